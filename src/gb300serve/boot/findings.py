"""What explains a failure: every explanation of a line, and the best one of a boot."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gb300serve.boot.lines import Record
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals import CAUSES_OF
from gb300serve.boot.signals.failures import DOCKER, EXCEPTION
from gb300serve.boot.signals.model import Cause, EngineName, Rank, Value, values_of

_EXCEPTION = re.compile(EXCEPTION)
_DOCKER = re.compile(DOCKER)
# Searching a hundred literal texts takes a twentieth of the time of one expression with a hundred alternatives.
_FIELD = re.compile(r"[a-z_]\w{0,60}(?:\.[\w-]{1,60}){0,8}")
# The longest lines that name a cause are 3 kB. A search may take the square of a line's length: 8 kB is 0.2 s.
LONGEST = 8192
_NEEDLES = {whose: tuple((cause.needle, cause) for cause in causes) for whose, causes in CAUSES_OF.items()}
# SGLang's logger writes no level: what it logs may be a warning, unless a row of its own knows the line.
_LOGGED = tuple((needle, cause) for needle, cause in _NEEDLES["sglang"] if cause.engine == "sglang")


@dataclass(frozen=True, slots=True)
class LogFinding:
    """An explanation: where it stands and what it says. `at` is seconds since the start of the boot."""

    reason: Reason
    rank: Rank
    values: Mapping[str, Value]
    line: int
    text: str
    phase: Phase
    at: float
    fatal: bool = True
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a text explains, wherever it stands."""

    reason: Reason
    rank: Rank
    values: Mapping[str, Value]
    fatal: bool = True
    lasting: bool = False


def explain(record: Record, engine: EngineName | None = None) -> Explanation | None:
    """The best explanation that a record gives, or None. `engine` is whose log it is; None: nobody knows yet."""
    text = record.text[:LONGEST]
    if text.startswith(("  File ", "    ", "Traceback ")):
        return None
    without_level = engine == "sglang" and record.form == "sglang" and not record.level
    best: Explanation | None = None
    for needle, cause in _LOGGED if without_level else _NEEDLES[engine]:
        if needle in text and (best is None or cause.rank > best.rank):
            best = _applied(cause, text) or best
    return best if without_level else best or _bare(record)


def with_field(explanation: Explanation, before: str) -> Explanation:
    """What pydantic says of a value, with the field that its line `before` names."""
    if "kind" not in explanation.values or _FIELD.fullmatch(before) is None:
        return explanation
    return replace(explanation, values={"argument": before, **explanation.values})


def _applied(cause: Cause, text: str) -> Explanation | None:
    match = cause.pattern.search(text)
    if match is None:
        return None
    values = values_of(match)
    values.pop("quote", None)
    reason = cause.refine(values) if cause.refine else cause.reason
    return Explanation(reason, cause.rank, values, cause.fatal, cause.lasting)


def _bare(record: Record) -> Explanation | None:
    match = _EXCEPTION.match(record.text)
    if match:
        rank = Rank.EXCEPTION if match["message"] else Rank.BARE
        return Explanation(Reason.UNKNOWN, rank, {"exception": match["exception"]})
    if _DOCKER.match(record.text):
        return Explanation(Reason.UNKNOWN, Rank.EXCEPTION, {})
    if record.level in {"ERROR", "CRITICAL"} and record.text.strip() and not record.text.startswith((" ", "Traceback")):
        return Explanation(Reason.UNKNOWN, Rank.BARE, {}, fatal=False)
    return None


def best(findings: Iterable[LogFinding]) -> LogFinding | None:
    """The finding that explains most; among equals the first one in the log."""
    return max(findings, key=lambda finding: (_weight(finding), -finding.line), default=None)


def _weight(finding: LogFinding) -> Rank:
    # A patch that is missing lets the engine serve: it does not explain why one failed, unless nothing else does.
    return Rank.EXCEPTION if finding.lasting else finding.rank
