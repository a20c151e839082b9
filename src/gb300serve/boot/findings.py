"""The explanations of a failure: of one line, and the best one of a boot."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gb300serve.boot.lines import Record
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.index import SignalTable
from gb300serve.boot.signals.model import Cause, Rank, Value, values_of

# The exception that Python prints last; its class may be dotted, its message may be empty.
_EXCEPTION = re.compile(
    r"^(?P<exception>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failure|Timeout|Fault|Abort))"
    r"(?:: ?(?P<message>.*))?$"
)
# An error of Docker's client whose text is not in the tables.
_DOCKER = re.compile(r"^docker: (?:Error response from daemon: )?(?P<message>.+)$")
# The line that pydantic prints before its message: the name of the field.
_FIELD = re.compile(r"[a-z_]\w{0,60}(?:\.[\w-]{1,60}){0,8}")
# The longest lines that name a cause are 3 kB. A search may take the square of a line's length: 8 kB is 0.2 s.
LONGEST = 8192


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a line explains."""

    reason: Reason
    rank: Rank
    values: Mapping[str, Value]
    fatal: bool = True
    lasting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFinding(Explanation):
    """An explanation and its line. `at` is seconds since the start of the boot."""

    line: int
    text: str
    phase: Phase
    at: float


def explain(record: Record, table: SignalTable) -> Explanation | None:
    """The best explanation that a record gives, or None."""
    text = record.text[:LONGEST]
    if text.startswith(("  File ", "    ", "Traceback ")):
        return None
    # Without a level the record may be a warning, unless a row of the engine itself matches it.
    unlevelled = record.form is not None and record.form == table.unlevelled_header and not record.level
    best: Explanation | None = None
    # A loop over a hundred substring searches takes a twentieth of the time of one expression with all alternatives.
    for cause in table.own_causes if unlevelled else table.causes:
        if cause.needle in text and (best is None or cause.rank > best.rank):
            best = _match(cause, text) or best
    return best if unlevelled else best or _explain_exception(record)


def with_field(explanation: Explanation, before: str) -> Explanation:
    """The explanation with the field that pydantic prints on the line `before` its message."""
    if "kind" not in explanation.values or _FIELD.fullmatch(before) is None:
        return explanation
    return replace(explanation, values={"argument": before, **explanation.values})


def _match(cause: Cause, text: str) -> Explanation | None:
    match = cause.pattern.search(text)
    if match is None:
        return None
    values = values_of(match)
    values.pop("quote", None)
    reason = cause.refine(values) if cause.refine else cause.reason
    return Explanation(reason, cause.rank, values, cause.fatal, cause.lasting)


def _explain_exception(record: Record) -> Explanation | None:
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
    """The finding with the highest rank; among equals, the first one in the log."""
    return max(findings, key=lambda finding: (_rank(finding), -finding.line), default=None)


def _rank(finding: LogFinding) -> Rank:
    # The engine also serves without a patch: a missing one explains a failure only if nothing else does.
    return Rank.EXCEPTION if finding.lasting else finding.rank
