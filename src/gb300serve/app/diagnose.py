"""A boot log that the command line names."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from gb300serve.app.environment import standard_input
from gb300serve.boot.diagnosis import Diagnosis, Evidence
from gb300serve.boot.events import BootBegan, PhaseEntered
from gb300serve.boot.log_facts import LogFacts
from gb300serve.core.errors import CommandLineError
from gb300serve.core.files import expand_user
from gb300serve.core.redaction import redact
from gb300serve.fit.learned import parse_arguments
from gb300serve.fit.remedy import BootLogReader

# Options of the engine whose values are secrets; its echo prints them as they are.
_SECRET_OPTIONS = ("api_key", "hf_token")
# A damaged log can be one line; the engine's echo of its arguments has 1 to 2 kB.
LONGEST = 4000


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """A diagnosis, its advice completed, and what else the log told."""

    diagnosis: Diagnosis
    heard: LogFacts
    told: bool = True
    """Whether any line says more than that something began."""

    def as_json(self) -> dict[str, Any]:
        """The object `gb300serve.diagnosis/1`; `tuning` is null where the boot tells nothing of its tuning cache."""
        tuning = self.heard.tuning
        return {**self.diagnosis.as_json(), "tuning": tuning.as_json() if tuning else None}

    def sentences(self) -> Iterator[str]:
        """The lines to print."""
        diagnosis, tuning = self.diagnosis, self.heard.tuning
        reason = f": {diagnosis.reason}" if diagnosis.reason else ""
        yield f"{diagnosis.state} in {diagnosis.phase}{reason}"
        yield from (f"  line {item.line}: {_short(item.text)}" for item in diagnosis.evidence)
        yield from (f"  {name}: {value}" for name, value in diagnosis.values.items())
        yield from (f"  {advice}" for advice in diagnosis.advice)
        if tuning:
            yield f"  {tuning.sentence()}"
        yield from (f"  {phase.value:18} {seconds:8.1f} s" for phase, seconds in diagnosis.phases)


def diagnosed(lines: Iterable[str]) -> Diagnosed:
    """Read a log line by line; its size does not matter."""
    reading, told = BootLogReader(), False
    for line in lines:
        events = reading.feed(line)
        told = told or any(not isinstance(event, (BootBegan, PhaseEntered)) for event in events)
    return Diagnosed(_without_secrets(reading.result(), tuple(_secrets(reading.facts))), reading.facts, told)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _secrets(heard: LogFacts) -> Iterator[str]:
    given = parse_arguments(heard.echo) or {}
    for option in _SECRET_OPTIONS:
        value = given.get(option)
        yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str) and one)


def _without_secrets(found: Diagnosis, secrets: tuple[str, ...]) -> Diagnosis:
    return replace(
        found,
        values={name: redact(v, secrets) if isinstance(v, str) else v for name, v in found.values.items()},
        evidence=tuple(Evidence(item.line, redact(item.text, secrets)) for item in found.evidence),
        advice=tuple(redact(text, secrets) for text in found.advice),
    )


class LogUnreadableError(CommandLineError):
    """The log cannot be opened."""

    def __init__(self, path: str, reason: str, *, runs: str | None = None) -> None:
        run = f", a run (a directory's name below {runs})" if runs else ""
        super().__init__(f"{path}: {reason}", hint=f"name a log file{run}, or - for standard input")


def read_log(file: str) -> Iterator[str]:
    """Its lines as they come; `-` is standard input."""
    try:
        source = standard_input().fileno() if file == "-" else expand_user(file)
        # A carriage return does not end a line: numbers are those of `grep -n`.
        with open(source, encoding="utf-8", errors="replace", newline="\n") as log:  # noqa: PTH123 - standard input has no path
            yield from log
    except OSError as error:
        raise LogUnreadableError(file, error.strerror or str(error)) from error
