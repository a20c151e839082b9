"""Read and diagnose a boot log."""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from gb300serve.app.environment import standard_input
from gb300serve.boot.diagnosis import Diagnosis, Evidence
from gb300serve.boot.events import BootBegan, PhaseEntered
from gb300serve.boot.lines import parse
from gb300serve.boot.prefixes import strip_prefixes
from gb300serve.boot.receipts import LogFacts
from gb300serve.core.errors import CommandLineError
from gb300serve.core.files import expand_user
from gb300serve.core.redaction import redact
from gb300serve.fit.learned import parse_arguments
from gb300serve.fit.remedy import BootLogReader

# Engine options with secret values; the engine's echo prints them unredacted.
_SECRET_OPTIONS = ("api_key", "hf_token")
# Of a line shown as evidence.
LONGEST, TAIL = 200, 120
# These tools name the cause at the end of their message; engines name it at the beginning.
_NAMES_CAUSE_LAST = ("docker: ", "Error response from daemon: ", "Error: ")
# At three in the morning nobody reads a fourth one; `--json` has all.
MOST_ACTIONS = 3


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """A diagnosis with complete advice, and further facts of the log."""

    diagnosis: Diagnosis
    facts: LogFacts
    has_progress: bool = True
    """Whether the log contains more than the begin of a boot and of phases."""

    def as_json(self) -> dict[str, Any]:
        """The object `gb300serve.diagnosis/1`; `tuning` is null if the log does not mention its tuning cache."""
        tuning = self.facts.tuning
        return {**self.diagnosis.as_json(), "tuning": tuning.as_json() if tuning else None}

    def sentences(self) -> Iterator[str]:
        """The screen: what failed, its reason, the line that shows it, and what to do; the rest if it did not fail."""
        diagnosis, tuning = self.diagnosis, self.facts.tuning
        yield diagnosis.summary
        if diagnosis.reason:
            yield f"reason: {diagnosis.reason}"
        yield from (f"  line {item.line}: {_short(item.text)}" for item in diagnosis.evidence)
        yield from (f"  - {advice}" for advice in diagnosis.advice[:MOST_ACTIONS])
        if diagnosis.state == "failed" or (diagnosis.state == "stopped" and not diagnosis.values):
            return
        yield from (f"  {name}: {value}" for name, value in diagnosis.values.items())
        if tuning:
            yield f"  {tuning.sentence()}"
        yield from (f"  {phase.value:18} {seconds:8.1f} s" for phase, seconds in diagnosis.phases)


def diagnosed(lines: Iterable[str]) -> Diagnosed:
    """Read a log line by line; its size does not matter."""
    reading, has_progress = BootLogReader(), False
    for line, at in strip_prefixes(lines):
        events = reading.feed(line, at)
        has_progress = has_progress or any(not isinstance(event, (BootBegan, PhaseEntered)) for event in events)
    reading.machine.finish()
    return Diagnosed(_without_secrets(reading.result(), tuple(_secrets(reading.facts))), reading.facts, has_progress)


def _short(text: str) -> str:
    """Without the header, and at most LONGEST characters."""
    text = parse(text).text.strip() or text.strip()
    if len(text) <= LONGEST:
        return text
    tail = text[-TAIL:] if text.startswith(_NAMES_CAUSE_LAST) else ""
    return f"{text[: LONGEST - len(tail) - 1]}…{tail}"


def _secrets(facts: LogFacts) -> Iterator[str]:
    given = parse_arguments(facts.echo) or {}
    for option in _SECRET_OPTIONS:
        value = given.get(option)
        yield from (v for v in (value if isinstance(value, list) else [value]) if isinstance(v, str) and v)


def _without_secrets(diagnosis: Diagnosis, secrets: tuple[str, ...]) -> Diagnosis:
    return replace(
        diagnosis,
        values={name: redact(v, secrets) if isinstance(v, str) else v for name, v in diagnosis.values.items()},
        evidence=tuple(Evidence(item.line, redact(item.text, secrets)) for item in diagnosis.evidence),
        advice=tuple(redact(text, secrets) for text in diagnosis.advice),
    )


class LogUnreadableError(CommandLineError):
    """The log cannot be opened."""

    def __init__(self, path: str, reason: str, *, runs: str | None = None) -> None:
        run = f", a run (a directory's name below {runs})" if runs else ""
        super().__init__(f"{path}: {reason}", hint=f"name a log file{run}, or - for standard input")


# Characters of a line that are kept. The states of a progress bar are one line; the first and the last ones count.
LONGEST_LINE = 1 << 20
_CHUNK = 1 << 20


def read_log(file: str) -> Iterator[str]:
    """The lines of the log, without their line feeds; `-` is standard input. Numbers are those of `grep -n`."""
    try:
        source = standard_input().fileno() if file == "-" else expand_user(file)
        with open(source, "rb") as log:  # noqa: PTH123 - standard input has no path
            yield from _lines(log)
    except OSError as error:
        raise LogUnreadableError(file, error.strerror or str(error)) from error


def _lines(log: BinaryIO) -> Iterator[str]:
    chunk = log.read(_CHUNK)
    decoder = getincrementaldecoder(_encoding(chunk))(errors="replace")
    rest = ""
    while chunk:
        *lines, rest = (rest + decoder.decode(chunk)).split("\n")
        yield from lines
        if len(rest) > LONGEST_LINE:
            rest = rest[: LONGEST_LINE // 2] + rest[-LONGEST_LINE // 2 :]
        chunk = log.read(_CHUNK)
    rest += decoder.decode(b"", final=True)
    if rest:
        yield rest


def _encoding(beginning: bytes) -> str:
    """The encoding of a log. PowerShell writes UTF-16: of its characters, most have a zero byte."""
    if beginning.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16"
    sample = beginning[:4096]
    low, high = sample[::2].count(0), sample[1::2].count(0)
    if 4 * max(low, high) > len(sample) and 8 * min(low, high) < len(sample):
        return "utf-16-le" if high > low else "utf-16-be"
    return "utf-8-sig"
