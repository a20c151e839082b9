"""Remedies for a boot that failed for lack of memory: the nearest settings that fit, with numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.boot.events import Event
from gb300serve.boot.machine import BootMachine
from gb300serve.boot.reasons import Reason
from gb300serve.boot.receipts import LogFacts
from gb300serve.engines.logs import boot_machine
from gb300serve.fit.checkpoint import GIB, Checkpoint, checkpoint_at_path, known_checkpoints
from gb300serve.fit.hardware import GB300, STATION, GraceMemory, host_verdict
from gb300serve.fit.learned import ECHO, NothingToLearnError, boot_from_log, parse_arguments, with_boots
from gb300serve.fit.memory import PRINTED_GIB, SPARE_GIB, memory_plan, request_of_boot
from gb300serve.fit.request import MemoryRequest, is_on_one_gpu, offload
from gb300serve.fit.result import NearestSetting, nearest_settings

# Relative difference up to which a size in a log counts as that of a known checkpoint or of a GB300.
TOLERANCE = 0.02
_MEMORY = frozenset({Reason.KV_CACHE_TOO_SMALL, Reason.KV_CACHE_NEGATIVE, Reason.OFFLOAD_NOT_APPLIED, Reason.GPU_OOM})
# The engine's figures and its own estimate come before settings that are computed, general advice after them.
FIRST_ADVICE = 2


def remedies(
    diagnosis: Diagnosis, facts: LogFacts, known: Checkpoint | None = None, grace: GraceMemory = STATION
) -> tuple[str, ...]:
    """Sentences for a memory failure, each with its basis; none if the boot failed for another reason.

    `known` is the checkpoint, if the caller knows it. For unknown checkpoints and other machines, the remedies are
    limited to what follows from the figures in the log.
    """
    options = parse_arguments(facts.echo)
    if not _is_about_memory(diagnosis) or options is None:
        return ()
    checkpoint = known or _checkpoint(options, facts)
    if checkpoint is None or not _on_one_gb300(options, diagnosis.values):
        return tuple(_by_figures(options, diagnosis.values, facts))
    extended, request, is_exact = _launch(checkpoint, facts)
    if not is_exact:
        return tuple(_by_figures(options, diagnosis.values, facts))
    if diagnosis.values.get("offloaded_gib") == 0:
        return tuple(_with_offload(checkpoint, request, grace))
    if memory_plan(extended, request).verdict == "fits":
        return ()  # the cause is not one that the memory plan models
    return _sentences(extended, request, grace, skip_length="estimated_max_model_len" in diagnosis.values)


def _is_about_memory(diagnosis: Diagnosis) -> bool:
    """A crash loop carries the values of its first boot."""
    loop = diagnosis.reason is Reason.CRASH_LOOP and not {"available_gib", "offloaded_gib"}.isdisjoint(diagnosis.values)
    return diagnosis.reason in _MEMORY or loop


def _on_one_gb300(options: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    if not is_on_one_gpu(options) or options.get("offload_backend") == "prefetch":
        return False
    total = values.get("total_gib")
    return not isinstance(total, int | float) or _is_close(total, GB300.total_gib)


def _is_close(one: float, other: float) -> bool:
    return abs(one - other) <= TOLERANCE * other


def _checkpoint(options: Mapping[str, Any], facts: LogFacts) -> Checkpoint | None:
    """By the model's path, else by the architecture; None if the log states another size."""
    paths = filter(None, (options.get(key) for key in ("model_tag", "model")))
    by_path = (checkpoint_at_path(path) for path in paths if isinstance(path, str))
    architecture = facts.figure("architecture", "architecture")
    by_architecture = (known for known in known_checkpoints() if known.architecture == architecture)
    checkpoint = next(filter(None, (*by_path, *by_architecture)), None)
    size = facts.number("checkpoint", "checkpoint_gib")
    differs = checkpoint is not None and size is not None and not _is_close(size, checkpoint.bytes / GIB)
    return None if differs else checkpoint


def _launch(checkpoint: Checkpoint, facts: LogFacts) -> tuple[Checkpoint, MemoryRequest, bool]:
    """The checkpoint with this boot added (if its log states the KV cache), and the boot's memory request.

    The last value is False if the log's offload contradicts the sizes: they belong to another checkpoint.
    """
    try:
        own = boot_from_log(checkpoint, "this boot", facts)
    except NothingToLearnError:
        own = boot_from_log(checkpoint, "this boot", facts, measured=False)
        return checkpoint, request_of_boot(own), True
    request = request_of_boot(own)
    computed = offload(checkpoint.parameters, request.cpu_offload_gb, request.cpu_offload_params).moved_gib
    is_exact = abs(float(own.figures["offloaded_gib"]) - computed) < PRINTED_GIB
    return with_boots(checkpoint, (own,)), request, is_exact


def _by_figures(options: Mapping[str, Any], values: Mapping[str, Any], facts: LogFacts) -> Iterator[str]:
    """The engine moves whole parameters until it reaches the requested size, so it moves at least that much."""
    figures = (values.get("needed_gib"), values.get("available_gib"), facts.number("offloaded_gib", "gib"))
    known = [figure for figure in figures if isinstance(figure, int | float)]
    if options.get("offload_backend") == "prefetch" or len(known) < len(figures):
        return
    needed, available, moved = known
    lacking = needed - available
    setting = f"cpu_offload_gb {ceil(moved + lacking + SPARE_GIB)}"
    yield f"{setting} moves {lacking:.2f} GiB more and fits, if the patterns match that much (computed from the log)"


def _with_offload(checkpoint: Checkpoint, request: MemoryRequest, grace: GraceMemory) -> Iterator[str]:
    """Nothing was offloaded: either the patterns are wrong, or the engine ignored them."""
    plan = memory_plan(checkpoint, request)
    if not plan.offload.unmatched:
        size = f"{plan.offload.moved_gib:.2f} GiB in {len(plan.offload.moved)} parameters"
        yield f"the patterns match {size}, but the engine ignored them ({plan.basis})"
        return
    names = next((request_of_boot(boot).cpu_offload_params for boot in checkpoint.boots), ())
    if not names:
        return
    corrected = replace(request, cpu_offload_params=names)
    plan = memory_plan(checkpoint, corrected)
    prefix = f"with cpu_offload_params [{', '.join(names)}] "
    if plan.verdict == "fits" and host_verdict(plan.host, grace) == "fits":
        yield prefix + _sentence(NearestSetting("cpu_offload_gb", _plain(request.cpu_offload_gb), plan))
        return
    yield from (prefix + sentence for sentence in _sentences(checkpoint, corrected, grace, skip_length=False))


def _sentences(
    checkpoint: Checkpoint, request: MemoryRequest, grace: GraceMemory, *, skip_length: bool
) -> tuple[str, ...]:
    """`skip_length`: the diagnosis contains the engine's own estimate of the context already."""
    nearest = nearest_settings(checkpoint, request, grace)
    return tuple(_sentence(setting) for setting in nearest if not (skip_length and setting.option == "max_model_len"))


def _sentence(setting: NearestSetting) -> str:
    plan = setting.plan
    moves = f"moves {plan.host.offloaded_gib:.2f} GiB and fits" if setting.option == "cpu_offload_gb" else "fits"
    cache = f"{plan.hbm.kv_cache_gib or 0.0:.2f} GiB of KV cache"
    return f"{setting.option} {setting.value} {moves}, with {cache} ({plan.basis})"


def _plain(value: float) -> int | float:
    return int(value) if value.is_integer() else value


@dataclass(slots=True)
class BootLogReader:
    """Reads one boot log from its first line. The machine also takes ticks and observations from the caller."""

    machine: BootMachine = field(default_factory=boot_machine)
    facts: LogFacts = field(default_factory=lambda: LogFacts(ECHO))

    def feed(self, line: str, at: float | None = None) -> tuple[Event, ...]:
        """Read a raw line; `at` is seconds since the start of the container."""
        events = self.machine.feed(line, at)
        self.facts.take(line, events)
        return events

    def result(self) -> Diagnosis:
        """The diagnosis of the boot, with remedies if it failed for lack of memory."""
        diagnosis = self.machine.result()
        computed = remedies(diagnosis, self.facts)
        first, rest = diagnosis.advice[:FIRST_ADVICE], diagnosis.advice[FIRST_ADVICE:]
        return replace(diagnosis, advice=(*first, *computed, *rest))
