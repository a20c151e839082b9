"""The diagnosis of a log, and the object that `diagnose --json` prints."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from gb300serve.boot.advice import advise, advise_stalled, advise_tuning
from gb300serve.boot.dialect import dialect
from gb300serve.boot.events import ReceiptValue
from gb300serve.boot.findings import LogFinding, best
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Rank, number
from gb300serve.boot.state import Course, is_stalled
from gb300serve.core.text import parse_digits
from gb300serve.core.values import DEFAULT_PORTS

State: TypeAlias = Literal["ready", "booting", "tuning", "stalled", "failed", "stopped"]

SCHEMA = "gb300serve.diagnosis/1"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line of the log, counted as `grep -n` counts, and its text."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What became of a boot. `phases` are names and seconds in the order in which they came."""

    state: State
    phase: Phase
    reason: Reason | None = None
    values: Mapping[str, ReceiptValue] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[str, ...] = ()
    phases: tuple[tuple[Phase, float], ...] = ()
    boots: int = 0

    def as_json(self) -> dict[str, Any]:
        """The object `gb300serve.diagnosis/1`."""
        return {
            "schema": SCHEMA,
            "state": self.state,
            "phase": self.phase.value,
            "reason": self.reason.value if self.reason else None,
            "values": dict(self.values),
            "evidence": [{"line": item.line, "text": item.text} for item in self.evidence],
            "advice": list(self.advice),
            "phases": [{"name": phase.value, "seconds": round(seconds, 3)} for phase, seconds in self.phases],
            "boots": self.boots,
        }


def exit_code(diagnosis: Diagnosis) -> int:
    """8 for a boot that failed or stalled, 9 for one that serves wrongly, else 0."""
    if diagnosis.state in {"failed", "stalled"}:
        return 8
    return 9 if diagnosis.state == "ready" and diagnosis.reason else 0


# Runs of a restart policy that end before they serve; two can be a first try and its correction.
LOOP = 3


@dataclass(slots=True)
class BootHistory:
    """The boots before the last one: how many in a row ended before they served, and what became of the first."""

    unserved: int = 0
    first: Diagnosis | None = None
    arguments: str = ""

    def close(self, course: Course) -> None:
        """Another boot begins: `course` has ended, whatever it said."""
        if course.stopped or (course.served and not _never_listened(course)):
            self.unserved, self.first = 0, None
            return
        if self.unserved == 0:
            self.first, self.arguments = _of_one(course), course.arguments
        self.unserved += 1


def diagnose(course: Course | None, history: BootHistory) -> Diagnosis:
    """The diagnosis of the last boot, or of the loop that it is part of."""
    if course is None:
        return Diagnosis("booting", Phase.STARTING)
    diagnosis = _of_one(course)
    first = history.first
    if first is not None and _is_loop(course, history, first):
        return _loop(diagnosis, first, course.number)
    return diagnosis


def _is_loop(course: Course, history: BootHistory, first: Diagnosis) -> bool:
    if course.stopped or (course.served and not _never_listened(course)):
        return False
    if course.failed:
        return history.unserved + 1 >= LOOP
    phases = list(Phase)
    again = course.arguments in {"", history.arguments} and phases.index(course.phase) <= phases.index(first.phase)
    return history.unserved >= LOOP and again


def _never_listened(course: Course) -> bool:
    """Some versions say that they started and bind their port afterwards."""
    return any(finding.reason is Reason.PORT_IN_USE for finding in course.findings)


def _loop(last: Diagnosis, first: Diagnosis, boots: int) -> Diagnosis:
    """Where the first boot was only cut short, what was to be done about it then (let it tune) is no advice now."""
    of_first = first.advice if first.reason is not None else ()
    return Diagnosis(
        state="failed",
        phase=first.phase,
        reason=Reason.CRASH_LOOP,
        values=first.values,
        evidence=first.evidence,
        advice=(*advise(Reason.CRASH_LOOP, {"boots": boots, "reason": first.reason or "unknown"}), *of_first),
        phases=last.phases,
        boots=boots,
    )


def _of_one(course: Course) -> Diagnosis:
    state = _state(course)
    finding = _cause(course, state)
    phase = finding.phase if finding and state == "failed" else course.phase
    reason, values, evidence = _explained(course, finding, state)
    return Diagnosis(
        state=state,
        phase=phase,
        reason=reason,
        values=values,
        evidence=evidence,
        advice=_advice(course, reason, values, state),
        phases=_seconds(course),
        boots=course.number,
    )


def _state(course: Course) -> State:
    if course.stopped:
        return "stopped"
    if course.failed:
        return "failed"
    if course.served:
        return "ready"
    if is_stalled(course):
        return "stalled"
    tuning = course.tuning
    if course.phase is Phase.TUNING_KERNELS and not tuning.ended and (tuning.missed or _has_nothing_loaded(course)):
        return "tuning"
    return "booting"


def _has_nothing_loaded(course: Course) -> bool:
    return course.tuning.running and course.tuning.loaded == 0


def _cause(course: Course, state: State) -> LogFinding | None:
    if state == "failed":
        return best(course.findings)
    if state == "ready":
        return best(finding for finding in course.findings if finding.lasting)
    return None


def _explained(
    course: Course, finding: LogFinding | None, state: State
) -> tuple[Reason | None, dict[str, ReceiptValue], tuple[Evidence, ...]]:
    """Reason, values and evidence, after what the rest of the boot adds to the line that names the cause."""
    if finding is None:
        return _unexplained(course, state)
    evidence: tuple[Evidence, ...] = (Evidence(finding.line, finding.text),)
    if finding.rank is Rank.CLOSING and not course.opened:  # the log was cut: what was said before is not known
        return Reason.UNKNOWN, dict(finding.values), evidence
    if finding.reason is Reason.GPU_OOM or finding.reason is Reason.KV_CACHE_NEGATIVE:
        asked = _offload_asked(course)
        if asked and not course.receipts.get("offloaded_gib", {}).get("gib"):
            values = {"asked_gib": asked, "offloaded_gib": 0, **finding.values}
            return Reason.OFFLOAD_NOT_APPLIED, values, (*evidence, *_at(course.arguments_at))
    if finding.reason is Reason.UNKNOWN and finding.rank <= Rank.EXCEPTION and _negative_kv(course):
        return Reason.KV_CACHE_NEGATIVE, _kv_values(course), _at(course.receipts_at.get("kv_cache_gib"))
    values = dict(finding.values)
    if finding.reason is Reason.KV_CACHE_NEGATIVE:
        values = {**_kv_values(course), **values}
        evidence = (*evidence, *_at(course.receipts_at.get("kv_cache_gib")))
    if finding.reason is Reason.PORT_IN_USE and "port" not in values:
        port = parse_digits(course.argument("port") or "")
        values["port"] = DEFAULT_PORTS[course.engine or "vllm"] if port is None else port
    return finding.reason, values, evidence


def _unexplained(course: Course, state: State) -> tuple[Reason | None, dict[str, ReceiptValue], tuple[Evidence, ...]]:
    if state == "ready" and course.hook_armed and not course.hook_works:
        return Reason.HOOK_NOT_INSTALLED, {}, _at(course.hook_armed)
    if state == "stalled":
        silent = round(course.watch.now() - course.quiet_from, 3)
        return None, {"silent_seconds": silent}, _at(course.progressed if course.progressed[0] else None)
    return None, {}, ()


def _at(place: tuple[int, str] | None) -> tuple[Evidence, ...]:
    return (Evidence(*place),) if place else ()


def _offload_asked(course: Course) -> float:
    """GiB that the arguments ask the UVA backend to offload; 0 where the engine says nothing of it."""
    if not dialect(course.engine).offloads or course.argument("offload_backend") == "prefetch":
        return 0.0
    asked = number(course.argument("cpu_offload_gb") or "")
    return float(asked) if isinstance(asked, int | float) else 0.0


def _negative_kv(course: Course) -> bool:
    gib = course.receipts.get("kv_cache_gib", {}).get("gib", 0)
    return isinstance(gib, int | float) and gib < 0


def _kv_values(course: Course) -> dict[str, ReceiptValue]:
    return {"available_gib": course.receipts["kv_cache_gib"]["gib"]} if "kv_cache_gib" in course.receipts else {}


def _seconds(course: Course) -> tuple[tuple[Phase, float], ...]:
    starts = [at for _, at in course.visits]
    ends = [*starts[1:], course.watch.now()]
    return tuple((phase, end - at) for (phase, at), end in zip(course.visits, ends, strict=True))


def _advice(course: Course, reason: Reason | None, values: Mapping[str, ReceiptValue], state: State) -> tuple[str, ...]:
    if reason is not None:
        known: dict[str, ReceiptValue] = {"phase": course.phase.value}
        for name in dialect(course.engine).named:
            value = course.argument(name)
            if value:
                known[name] = value
        return advise(reason, {**known, **values}, course.engine)
    if state == "stalled":
        return advise_stalled(course.phase, course.watch.now() - course.quiet_from)
    return advise_tuning() if state == "tuning" else ()
