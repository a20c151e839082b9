"""What would have let a boot start that failed for want of memory: the nearest settings that fit, with numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.boot.events import Event
from gb300serve.boot.log_facts import LogFacts
from gb300serve.boot.machine import BootMachine
from gb300serve.boot.reasons import Reason
from gb300serve.engines.logs import boot_machine
from gb300serve.fit.checkpoint import GIB, Checkpoint, checkpoint_at, checkpoints
from gb300serve.fit.learned import ECHO, NothingToLearnError, arguments, boot_of, with_boots
from gb300serve.fit.memory import PRINTED_GIB, SPARE_GIB, demand_at, memory_plan
from gb300serve.fit.model import GB300, STATION, Grace, MemoryPlan, host_verdict
from gb300serve.fit.request import Demand, offload
from gb300serve.fit.result import Nearest, nearest

# How far the sizes that a log states may be from a known checkpoint's, or from a GB300's, and still be that.
SAME_SHARE = 0.02
_MEMORY = frozenset({Reason.KV_CACHE_TOO_SMALL, Reason.KV_CACHE_NEGATIVE, Reason.OFFLOAD_NOT_APPLIED, Reason.GPU_OOM})
_RANKS = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


def remedies(
    diagnosis: Diagnosis, heard: LogFacts, known: Checkpoint | None = None, grace: Grace = STATION
) -> tuple[str, ...]:
    """Sentences for a failure of memory, each with its basis; none where another reason failed the boot.

    `known` is the checkpoint, where the caller knows it better than the log tells. Of a checkpoint whose sizes nobody
    knows, and of another machine, only what the log's own figures give is said.
    """
    options = arguments(heard.echo)
    if not _is_about_memory(diagnosis) or options is None:
        return ()
    checkpoint = known or _checkpoint(options, heard)
    if checkpoint is None or not _on_one_gb300(options, diagnosis.values):
        return tuple(_by_figures(options, diagnosis.values, heard))
    taught, demand, exact = _launch(checkpoint, heard)
    if not exact:
        return tuple(_by_figures(options, diagnosis.values, heard))
    if _moved_nothing(diagnosis):
        return tuple(_with_offload(checkpoint, demand, grace))
    if memory_plan(taught, demand).verdict == "fits":
        return ()  # the arithmetic does not see what the boot died of
    return _ways(taught, demand, grace, told="estimated_max_model_len" in diagnosis.values)


def _is_about_memory(diagnosis: Diagnosis) -> bool:
    """A loop of boots has the values of its first one."""
    loop = diagnosis.reason is Reason.CRASH_LOOP and not {"available_gib", "offloaded_gib"}.isdisjoint(diagnosis.values)
    return diagnosis.reason in _MEMORY or loop


def _moved_nothing(diagnosis: Diagnosis) -> bool:
    return diagnosis.values.get("offloaded_gib") == 0


def _on_one_gb300(options: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    if any(options.get(key) not in (None, 1) for key in _RANKS) or options.get("offload_backend") == "prefetch":
        return False
    total = values.get("total_gib")
    return not isinstance(total, int | float) or _alike(total, GB300.total_gib)


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= SAME_SHARE * other


def _checkpoint(options: Mapping[str, Any], heard: LogFacts) -> Checkpoint | None:
    """By the model's path, else by the architecture; not when the log states another size."""
    named = (options.get(key) for key in ("model_tag", "model"))
    found = next((one for path in named if isinstance(path, str) and (one := checkpoint_at(path))), None)
    architecture = heard.figure("architecture", "architecture")
    found = found or next((one for one in checkpoints() if one.architecture == architecture), None)
    size = heard.number("checkpoint", "checkpoint_gib")
    return None if found is None or (size is not None and not _alike(size, found.bytes / GIB)) else found


def _launch(checkpoint: Checkpoint, heard: LogFacts) -> tuple[Checkpoint, Demand, bool]:
    """The checkpoint as this very boot teaches it, where its log states the KV cache; and what the boot asked for.

    The last is False where the log moved another amount than the sizes say: they are not those of its checkpoint.
    """
    try:
        own = boot_of(checkpoint, "this boot", heard)
    except NothingToLearnError:
        own = boot_of(checkpoint, "this boot", heard, measured=False)
        return checkpoint, demand_at(own), True
    demand = demand_at(own)
    stairs = offload(checkpoint.parameters, demand.cpu_offload_gb, demand.cpu_offload_params).moved_gib
    exact = abs(float(own.figures["offloaded_gib"]) - stairs) < PRINTED_GIB
    return with_boots(checkpoint, (own,)), demand, exact


def _by_figures(options: Mapping[str, Any], values: Mapping[str, Any], heard: LogFacts) -> Iterator[str]:
    """The engine moves whole parameters until it has moved what was asked: asking for so much moves it at least."""
    figures = (values.get("needed_gib"), values.get("available_gib"), heard.number("offloaded_gib", "gib"))
    known = [figure for figure in figures if isinstance(figure, int | float)]
    if options.get("offload_backend") == "prefetch" or len(known) < len(figures):
        return
    needed, available, moved = known
    lacking = needed - available
    asked = ceil(moved + lacking + SPARE_GIB)
    yield f"cpu_offload_gb {asked} moves {lacking:.2f} GiB more and fits, where so much matches (computed from the log)"


def _with_offload(checkpoint: Checkpoint, demand: Demand, grace: Grace) -> Iterator[str]:
    """Nothing was moved: names that the checkpoint has, or else the engine is at fault."""
    plan = memory_plan(checkpoint, demand)
    if not plan.offload.unmatched:
        moves = f"{plan.offload.moved_gib:.2f} GiB in {len(plan.offload.moved)} parameters"
        yield f"these names do match, and {moves} should have moved: the engine ignored them ({plan.basis})"
        return
    names = next((demand_at(boot).cpu_offload_params for boot in checkpoint.boots), ())
    if not names:
        return
    corrected = replace(demand, cpu_offload_params=names)
    plan = memory_plan(checkpoint, corrected)
    prefix = f"with cpu_offload_params [{', '.join(names)}] "
    if plan.verdict == "fits" and host_verdict(plan.host, grace) == "fits":
        yield prefix + _sentence(Nearest("cpu_offload_gb", _plain(demand.cpu_offload_gb), plan))
        return
    yield from (prefix + one for one in _ways(checkpoint, corrected, grace, told=False))


def _ways(checkpoint: Checkpoint, demand: Demand, grace: Grace, *, told: bool) -> tuple[str, ...]:
    """`told`: the engine's own estimate of the context has been given already."""
    found = [one for one in nearest(checkpoint, demand, grace) if not (told and one.option == "max_model_len")]
    return tuple(map(_sentence, found))


def _sentence(one: Nearest) -> str:
    plan = one.plan
    moves = f"moves {plan.host.offloaded_gib:.2f} GiB and fits" if one.option == "cpu_offload_gb" else "fits"
    return f"{one.option} {one.value} {moves}, with {_left(plan)} GiB of KV cache ({plan.basis})"


def _left(plan: MemoryPlan) -> str:
    return f"{plan.hbm.kv_cache_gib or 0.0:.2f}"


def _plain(value: float) -> int | float:
    return int(value) if value.is_integer() else value


@dataclass(slots=True)
class Reading:
    """One log, from its first line on. The machine may be given ticks and glimpses beside it."""

    machine: BootMachine = field(default_factory=boot_machine)
    heard: LogFacts = field(default_factory=lambda: LogFacts(ECHO))

    def feed(self, line: str, at: float | None = None) -> tuple[Event, ...]:
        """A line as it came; `at` is seconds since the start of the container."""
        events = self.machine.feed(line, at)
        self.heard.take(line, events)
        return events

    def result(self) -> Diagnosis:
        """What became of the boot, with the nearest settings that fit where memory failed it."""
        found = self.machine.result()
        return replace(found, advice=(*found.advice, *remedies(found, self.heard)))
