"""The explanations of a failure: of one line, and the best one of a boot."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gb300serve.boot.lines import Record
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.index import SignalTable
from gb300serve.boot.signals.model import Cause, Rank, Value, values_of
from gb300serve.boot.tracebacks import LineRole, Traceback, is_usage_error

# The exception that Python prints last; its class may be dotted, its message may be empty.
_EXCEPTION = re.compile(
    r"^(?P<exception>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failure|Timeout|Fault|Abort|Exit))"
    r"(?:: ?(?P<message>.*))?$"
)
# In a traceback the line after the stack is an exception, whatever its class is called.
_RAISED = re.compile(r"^(?P<exception>[\w.]+)(?:: ?(?P<message>.*))?$")
# Text outside an exception that states that the program goes on.
_GOES_ON = re.compile(
    r"(?i)\bwill (?:be )?(?:ignored?|skip(?:ped)?|retry|continue|fall back)\b|\bignor(?:ed?|ing) (?:import )?error"
    r"|\bignoring\b|\bfall(?:ing|s)? back\b|\bskipping\b|\bretrying\b|\bcan (?:safely )?be (?:safely )?ignored\b"
    r"|\bplease ignore\b|\bharmless\b|\bnon-fatal\b|\bnot fatal\b|^\S*Warning: |: \w*Warning: |\bNCCL (?:INFO|TRACE)\b"
)
# A boot that fails for such a reason, or with such a line, was at least that far.
_PROVEN: dict[Reason, Phase] = {
    Reason.KV_CACHE_TOO_SMALL: Phase.SIZING_KV_CACHE,
    Reason.KV_CACHE_NEGATIVE: Phase.SIZING_KV_CACHE,
    Reason.MEMORY_FREED_DURING_PROFILING: Phase.PROFILING,
    Reason.WEIGHTS_MISMATCH: Phase.LOADING_WEIGHTS,
}
_PROVING = (
    ("EngineCore encountered a", Phase.SERVING),
    ("Watchdog timeout (self.watchdog_timeout", Phase.SERVING),
    ("Capture cuda graph failed", Phase.CAPTURING_GRAPHS),
)
_VAGUE = frozenset({Rank.VAGUE, Rank.BROAD})
_IN_EXCEPTION = frozenset({LineRole.EXCEPTION, LineRole.MESSAGE})
# An error of a container tool, or of a library in Rust, whose text is not in the tables.
_TOOL = re.compile(
    r"docker: |nvidia-container-cli: |Error response from daemon: |Cannot connect to the Docker daemon"
    r"|Error from server|Error: |error during connect: |thread '.{0,100}' panicked at "
)
# What Kubernetes prints of a pod, in columns.
_POD = re.compile(r" +(?:Reason|Exit Code): ")
# The line that pydantic prints before its message: the name of the field.
_FIELD = re.compile(r"[a-z_]\w{0,60}(?:\.[\w-]{1,60}){0,8}")
# Groups that only help a pattern or its `refine`.
_UNSHOWN = ("quote", "refused")
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
    process: str = ""
    chain: int = 0
    """Exceptions of one failure share it; 0 outside a traceback."""
    dealt_with: int = 0
    """How many exceptions of the chain the program had dealt with before this one."""


def explain(
    record: Record,
    table: SignalTable,
    role: LineRole = LineRole.NONE,
    traceback: Traceback | None = None,
) -> Explanation | None:
    """The best explanation that a record gives, or None. `role` is what the record is in the traceback."""
    text = record.text[:LONGEST]
    if role is LineRole.EXCEPTION and text.startswith(" "):
        text = text[1:]
    functions = traceback.functions if traceback else ()
    if text == "AssertionError" and traceback and traceback.source:
        text = f"{text}: {traceback.source}"  # the condition that does not hold
    if role is LineRole.FRAME or role is LineRole.HANDLED or text.startswith(("  File ", "Traceback ")):
        return None
    if text.startswith("    ") and _POD.match(text) is None:
        return None
    raised = _is_raised(text, role)
    if not raised and _GOES_ON.search(text):
        return None
    # Without a level the record may be a warning, unless a row of the engine itself matches it.
    is_own = record.form is not None and record.form == table.unlevelled_header
    unlevelled = is_own and not record.level and "NCCL WARN" not in text
    best: Explanation | None = None
    for cause in table.causes_in(text, own=unlevelled):
        if (best is None or cause.rank > best.rank) and (cause.function is None or cause.function in functions):
            best = _match(cause, text) or best
    if best is not None and not raised and best.rank in _VAGUE and best.reason is not Reason.HOST_OOM_KILLED:
        # Printed on the way: an exception explains the failure better.
        best = replace(best, rank=Rank.BARE)
    return best if unlevelled else best or _explain_refusal(record, table, role) or _explain_exception(record, role)


def proven_phase(reason: Reason, text: str) -> Phase:
    """The earliest phase that a boot with such a failure was in."""
    return _PROVEN.get(reason) or next((phase for start, phase in _PROVING if start in text), Phase.STARTING)


def _is_raised(text: str, role: LineRole) -> bool:
    """Whether the line is an error that ends a program, and not only a line that it printed on the way."""
    if role in _IN_EXCEPTION or _EXCEPTION.match(text) or _TOOL.match(text) or is_usage_error(text):
        return True
    return text.lstrip().startswith("what():")  # C++ prints it before it aborts


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
    reason = cause.refine(values) if cause.refine else cause.reason
    for name in _UNSHOWN:
        values.pop(name, None)
    return Explanation(reason, cause.rank, values, cause.fatal, cause.lasting)


# Of the source of a `raise`: its class, and what stands between the texts that it joins.
_RAISE = re.compile(r"raise (?P<exception>\w+)\(\s*")
_QUOTES = re.compile(r"[\"']\s*(?:\+\s*)?[frb]{0,2}[\"']|^[frb]{0,2}[\"']|[\"']\)?,?$")


def explain_cut(traceback: Traceback, table: SignalTable) -> Explanation:
    """The explanation of a traceback that lacks its exception: by the text that its last function raises."""
    unknown = Explanation(Reason.UNKNOWN, Rank.BARE, {})
    match = _RAISE.match(traceback.raising)
    if match is None:
        return unknown
    text = _QUOTES.sub("", traceback.raising[match.end() :])
    raised = Record("", "", "", f"{match['exception']}: {text}")
    found = explain(raised, table, LineRole.EXCEPTION, traceback)
    return unknown if found is None or found.reason is Reason.UNKNOWN else replace(found, values={})


def _explain_refusal(record: Record, table: SignalTable, role: LineRole) -> Explanation | None:
    # vLLM logs the message of an exception without its class: a failure only if nothing follows it.
    if record.level not in {"ERROR", "CRITICAL"} or role is not LineRole.NONE or record.form != "levelled":
        return None
    raised = Record(record.process, "", "", f"ValueError: {record.text}")
    found = explain(raised, table, LineRole.EXCEPTION)
    if found is None or found.reason is Reason.UNKNOWN:
        return None
    return replace(found, rank=Rank.NOTED, fatal=False)


def _explain_exception(record: Record, role: LineRole) -> Explanation | None:
    match = (_RAISED if role is LineRole.EXCEPTION else _EXCEPTION).match(record.text.strip())
    if match:
        rank = Rank.EXCEPTION if match["message"] else Rank.BARE
        return Explanation(Reason.UNKNOWN, rank, {"exception": match["exception"]})
    if _TOOL.match(record.text):
        return Explanation(Reason.UNKNOWN, Rank.EXCEPTION, {})
    is_noted = record.level in {"ERROR", "CRITICAL"} and role is not LineRole.MESSAGE
    if is_noted and record.text.strip() and not record.text.startswith(" "):
        return Explanation(Reason.UNKNOWN, Rank.NOTED, {}, fatal=False)
    return None


def best(findings: Iterable[LogFinding]) -> LogFinding | None:
    """The finding with the highest rank; among equals, the first one in the log.

    Of chained exceptions with different reasons that are equally vague, one that the program had dealt with is not the
    cause; of those that no table knows, the last one describes the failure in the words of its caller.
    """
    given = tuple(findings)
    first = max(given, key=lambda finding: (_rank(finding), -finding.line), default=None)
    if first is None or not first.chain or first.rank is Rank.SPECIFIC:
        return first
    chain = [finding for finding in given if finding.chain == first.chain and finding.rank is first.rank]
    if first.reason is Reason.UNKNOWN:
        return chain[-1] if first.rank is Rank.EXCEPTION else first
    last = max(chain, key=lambda finding: (finding.dealt_with, -finding.line))
    return last if last.reason is not first.reason else first


def _rank(finding: LogFinding) -> Rank:
    # The engine also serves without a patch: a missing one explains a failure only if nothing else does.
    return Rank.EXCEPTION if finding.lasting else finding.rank
