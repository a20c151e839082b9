"""The diagnosis of a log, and the object that `diagnose --json` prints."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from gb300serve.boot.advice import advise, advise_stalled, advise_tuning
from gb300serve.boot.events import ReceiptValue
from gb300serve.boot.findings import LogFinding, best
from gb300serve.boot.phases import ACTIVITIES, Phase
from gb300serve.boot.reasons import PROBLEMS, Reason
from gb300serve.boot.signals.model import Rank, number
from gb300serve.boot.state import BootState, is_stalled
from gb300serve.core.text import parse_digits
from gb300serve.core.values import EngineName

State: TypeAlias = Literal["ready", "booting", "tuning", "stalled", "failed", "stopped"]

# The engines' names for the model, in their echo of the arguments.
_MODEL_ARGUMENTS = ("model_tag", "model", "model_path")
LONGEST_MODEL = 100
_ENGINE_PROCESSES = ("EngineCore", "Worker")
_REPOSITORY = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")

SCHEMA = "gb300serve.diagnosis/1"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line of the log, counted as `grep -n` counts, and its text."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of a boot. `phases` are names and seconds in the order of the log."""

    state: State
    phase: Phase
    reason: Reason | None = None
    values: Mapping[str, ReceiptValue] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[str, ...] = ()
    phases: tuple[tuple[Phase, float], ...] = ()
    boots: int = 0
    summary: str = ""
    """One sentence."""

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
            "summary": self.summary,
        }


def exit_code(diagnosis: Diagnosis) -> int:
    """8 if the boot failed or stalled, 9 if it serves but not as the recipe describes, else 0."""
    if diagnosis.state in {"failed", "stalled"}:
        return 8
    return 9 if diagnosis.state == "ready" and diagnosis.reason else 0


# Boots in a row that end before they serve; two can be a first try and its correction.
LOOP = 3


@dataclass(slots=True)
class BootHistory:
    """The boots before the last one: how many in a row ended before they served, and the diagnosis of the first."""

    unserved: int = 0
    first: Diagnosis | None = None
    arguments: str = ""

    def close(self, boot: BootState) -> None:
        """Another boot begins, so `boot` has ended."""
        if boot.stopped or (boot.served and not _never_listened(boot)):
            self.unserved, self.first = 0, None
            return
        if self.unserved == 0:
            self.first, self.arguments = _diagnose_one(boot), boot.arguments
        self.unserved += 1


def diagnose(boot: BootState | None, history: BootHistory, engine: EngineName | None = None) -> Diagnosis:
    """The diagnosis of the last boot, or of the loop that it is part of. `engine` is None if no line shows it."""
    if boot is None:
        return Diagnosis("booting", Phase.STARTING, summary="The log is empty.")
    diagnosis = _diagnose_one(boot)
    first = history.first
    if first is not None and _is_loop(boot, history, first):
        diagnosis = _loop(diagnosis, first, boot)
    return replace(diagnosis, summary=_summary(boot, diagnosis, engine))


def _summary(boot: BootState, diagnosis: Diagnosis, engine: EngineName | None) -> str:
    """One sentence: which engine, which model, how far, and what failed."""
    problem = f": {PROBLEMS[diagnosis.reason]}" if diagnosis.reason else ""
    if engine is None and not boot.progressed[0] and diagnosis.state == "booting":
        return "The log shows no boot of an engine."
    if engine is None and diagnosis.state == "failed" and diagnosis.phase is Phase.STARTING:
        return f"The container or its engine did not start{problem}."
    seconds = diagnosis.values.get("seconds_to_ready")
    after = f", {seconds:.0f} s after its start" if isinstance(seconds, int | float) else ""
    activity = ACTIVITIES[diagnosis.phase]
    predicates: dict[State, str] = {
        "ready": f"is ready{after}" + (f", but not as intended{problem}" if problem else ""),
        "booting": f"is {activity}",
        "tuning": "is tuning kernels",
        "stalled": f"made no progress while {activity}",
        "failed": f"failed while {activity}{problem}",
        "stopped": f"was stopped while {activity}",
    }
    return f"{_subject(boot, engine)} {predicates[diagnosis.state]}."


def _subject(boot: BootState, engine: EngineName | None) -> str:
    version = boot.receipts.get("engine_version", {}).get("version", "")
    name = f"{boot.log.title} {version}".rstrip() if engine else "The engine"
    served = (boot.argument("served_model_name") or "").strip("[]'").partition("'")[0]
    model = served or next(filter(None, map(boot.argument, _MODEL_ARGUMENTS)), "")
    architecture = boot.receipts.get("architecture", {}).get("architecture")
    if model.startswith("/") and architecture:  # in most containers it is called /model
        model = f"{model} ({architecture})"
    return f"{name} with {model}" if 0 < len(model) <= LONGEST_MODEL else name


def _is_loop(boot: BootState, history: BootHistory, first: Diagnosis) -> bool:
    if boot.stopped or (boot.served and not _never_listened(boot)):
        return False
    if boot.failed:
        return history.unserved + 1 >= LOOP
    phases = list(Phase)
    again = boot.arguments in {"", history.arguments} and phases.index(boot.phase) <= phases.index(first.phase)
    return history.unserved >= LOOP and again


def _never_listened(boot: BootState) -> bool:
    """Some versions report that they started before they bind their port."""
    return any(finding.reason is Reason.PORT_IN_USE for finding in boot.findings)


def _loop(last: Diagnosis, first: Diagnosis, boot: BootState) -> Diagnosis:
    """If the first boot was only cut short, its advice at that time (let it tune) does not apply."""
    loop = advise(Reason.CRASH_LOOP, {"boots": boot.number, "reason": first.reason or "unknown"}, boot.log)
    return Diagnosis(
        state="failed",
        phase=first.phase,
        reason=Reason.CRASH_LOOP,
        values=first.values,
        evidence=first.evidence,
        advice=(*loop, *(first.advice if first.reason is not None else ())),
        phases=last.phases,
        boots=boot.number,
    )


def _diagnose_one(boot: BootState) -> Diagnosis:
    state = _state(boot)
    finding = _cause(boot, state)
    phase = _phase_of(boot, finding) if finding and state == "failed" else boot.phase
    reason, values, evidence = _explain(boot, finding, state)
    return Diagnosis(
        state=state,
        phase=phase,
        reason=reason,
        values=values,
        evidence=evidence,
        advice=_advice(boot, reason, values, state),
        phases=_seconds(boot),
        boots=boot.number,
    )


def _phase_of(boot: BootState, finding: LogFinding) -> Phase:
    """The latest phase that the exceptions of the failure show."""
    chain = [item.phase for item in boot.findings if finding.chain and item.chain == finding.chain]
    return max((finding.phase, *chain), key=list(Phase).index)


def _state(boot: BootState) -> State:
    if boot.stopped:
        return "stopped"
    if boot.failed:
        return "failed"
    if boot.served:
        return "ready"
    if is_stalled(boot):
        return "stalled"
    tuning = boot.tuning
    has_nothing_loaded = tuning.missed or (tuning.running and tuning.loaded == 0)
    return "tuning" if boot.phase is Phase.TUNING_KERNELS and not tuning.ended and has_nothing_loaded else "booting"


def _cause(boot: BootState, state: State) -> LogFinding | None:
    if state == "failed":
        alive = best(finding for finding in boot.findings if not boot.is_survived(finding))
        # Another rank may have gone on: the line that only reports the end is not the cause.
        return alive if alive is not None and alive.rank > Rank.NOTED else best(boot.findings)
    return best(finding for finding in boot.findings if finding.lasting) if state == "ready" else None


_Explained: TypeAlias = tuple[Reason | None, dict[str, ReceiptValue], tuple[Evidence, ...]]


def _explain(boot: BootState, finding: LogFinding | None, state: State) -> _Explained:
    if finding is None:
        return _explain_without_cause(boot, state)
    evidence: tuple[Evidence, ...] = (Evidence(finding.line, finding.text),)
    if _is_cut(boot, finding) or (finding.reason is Reason.DISTRIBUTED_INIT_FAILED and boot.served):
        return Reason.UNKNOWN, dict(finding.values), evidence
    if finding.reason is Reason.GPU_OOM or finding.reason is Reason.KV_CACHE_NEGATIVE:
        requested = _requested_offload(boot)
        # Versions that do not report their offload may well have offloaded.
        reports = not {"offloader", "offloaded_gib"}.isdisjoint(boot.receipts)
        if requested and reports and not boot.receipts.get("offloaded_gib", {}).get("gib"):
            values = {"asked_gib": requested, "offloaded_gib": 0, **finding.values}
            return Reason.OFFLOAD_NOT_APPLIED, values, (*evidence, *_at(boot.arguments_at))
    if finding.reason is Reason.UNKNOWN and finding.rank <= Rank.EXCEPTION and _has_negative_kv_cache(boot):
        return Reason.KV_CACHE_NEGATIVE, _kv_values(boot), _at(boot.receipts_at.get("kv_cache_gib"))
    values = {**(_figures(boot) if state == "ready" else {}), **finding.values}
    if finding.reason is Reason.KV_CACHE_NEGATIVE:
        values = {**_kv_values(boot), **values}
        evidence = (*evidence, *_at(boot.receipts_at.get("kv_cache_gib")))
    if finding.reason is Reason.MODEL_ACCESS_DENIED:
        model = next(filter(None, map(boot.argument, _MODEL_ARGUMENTS)), "")
        values |= {"repo": model} if _REPOSITORY.fullmatch(model) else {}
    if finding.reason is Reason.PORT_IN_USE and "port" not in values:
        port = parse_digits(boot.argument("port") or "")
        values["port"] = boot.log.default_port if port is None else port
    return finding.reason, values, evidence


def _is_cut(boot: BootState, finding: LogFinding) -> bool:
    """Whether the lines that explain the failure may be missing.

    Silence before the closing line means that the engine's process was killed, but only in a whole log: one that begins
    with the first line, and shows that process.
    """
    is_whole = boot.opened and any(process.startswith(_ENGINE_PROCESSES) for process in boot.progress_of)
    return finding.rank <= Rank.BARE and "nitialization failed" in finding.text and not is_whole


def _explain_without_cause(boot: BootState, state: State) -> _Explained:
    if state == "ready" and boot.hook_armed and not boot.hook_works:
        return Reason.HOOK_NOT_INSTALLED, _figures(boot), _at(boot.hook_armed)
    if state == "ready" or (state == "stopped" and boot.served):
        return None, _figures(boot), ()
    if state == "stalled":
        silent = round(boot.watch.now() - boot.quiet_from, 3)
        return None, {"silent_seconds": silent}, _at(boot.progressed if boot.progressed[0] else None)
    return None, {}, ()


# The figures of a boot that serves: name, receipt and its value; the first one that the log has counts.
_FIGURES = (
    ("engine_version", "engine_version", "version"),
    ("weights_gib", "model_loading", "gib"),
    ("kv_cache_gib", "kv_cache_gib", "gib"),
    ("kv_cache_tokens", "kv_cache_tokens", "tokens"),
    ("kv_cache_tokens", "token_pool", "tokens"),
    ("concurrency", "kv_cache_tokens", "concurrency"),
    ("concurrency", "concurrency", "concurrency"),
)


def _figures(boot: BootState) -> dict[str, ReceiptValue]:
    figures: dict[str, ReceiptValue] = {}
    for name, receipt, key in _FIGURES:
        value = boot.receipts.get(receipt, {}).get(key)
        if value is not None:
            figures.setdefault(name, value)
    pool = boot.receipts.get("token_pool", {})
    tokens, length = pool.get("tokens"), pool.get("context_len")
    if "concurrency" not in figures and isinstance(tokens, int) and isinstance(length, int) and length:
        figures["concurrency"] = round(tokens / length, 2)
    sizes = [boot.receipts.get("kv_cache_tokens", {}).get(part) for part in ("k_gib", "v_gib", "gib")]
    known = [size for size in sizes if isinstance(size, int | float)]
    if "kv_cache_gib" not in figures and known:
        figures["kv_cache_gib"] = round(sum(known), 2)
    if boot.arguments and boot.ready_at:
        figures["seconds_to_ready"] = round(boot.ready_at, 1)
    return figures


def _at(place: tuple[int, str] | None) -> tuple[Evidence, ...]:
    return (Evidence(*place),) if place else ()


def _requested_offload(boot: BootState) -> float:
    """GiB that the arguments tell the UVA backend to offload; 0 if the engine has no such argument."""
    name = boot.log.offload_argument
    if name is None or boot.argument("offload_backend") == "prefetch":
        return 0.0
    gib = number(boot.argument(name) or "")
    return float(gib) if isinstance(gib, int | float) else 0.0


def _has_negative_kv_cache(boot: BootState) -> bool:
    gib = boot.receipts.get("kv_cache_gib", {}).get("gib", 0)
    return isinstance(gib, int | float) and gib < 0


def _kv_values(boot: BootState) -> dict[str, ReceiptValue]:
    return {"available_gib": boot.receipts["kv_cache_gib"]["gib"]} if "kv_cache_gib" in boot.receipts else {}


def _seconds(boot: BootState) -> tuple[tuple[Phase, float], ...]:
    starts = [at for _, at in boot.visits]
    ends = [*starts[1:], boot.watch.now()]
    return tuple((phase, end - at) for (phase, at), end in zip(boot.visits, ends, strict=True))


def _advice(
    boot: BootState, reason: Reason | None, values: Mapping[str, ReceiptValue], state: State
) -> tuple[str, ...]:
    if reason is not None:
        known: dict[str, ReceiptValue] = {"phase": boot.phase.value, **_figures(boot)}
        for name in boot.log.advised_arguments:
            value = boot.argument(name)
            if value:
                known[name] = value
        return advise(reason, {**known, **values}, boot.log)
    if state == "stalled":
        return advise_stalled(boot.phase, boot.watch.now() - boot.quiet_from)
    return advise_tuning() if state == "tuning" else ()
