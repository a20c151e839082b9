"""What going from one release to another costs: a restart, tuning, memory, time; and what was measured of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gb300serve.autotune.sets import is_same_identity, short_identity
from gb300serve.compare.changes import Effect
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot
from gb300serve.fit.memory import request_of_boot
from gb300serve.fit.model import MemoryPlan
from gb300serve.fit.request import MemoryRequest
from gb300serve.recipe.model import EvidenceSection

Autotune = Literal["same", "new", "unknown"]
# Options without a part in the memory that have one in the identity; the model's path stands apart.
_IDENTITY = ("trust_remote_code", "revision", "generation_config")


@dataclass(frozen=True, slots=True)
class RecordedIdentity:
    """An identity (the beginning of the directory's name) that a boot of exactly these settings showed."""

    identity: str
    by: str
    tuning_seconds: float | None = None
    new_configs: int = 0
    """Kernels that the boot tuned although it had loaded the cache."""


@dataclass(frozen=True, slots=True)
class TuningVerdict:
    """The verdict with its reason."""

    verdict: Autotune
    reason: str


def recorded_identity(
    checkpoint: Checkpoint, demand: MemoryRequest, options: Mapping[str, Any]
) -> RecordedIdentity | None:
    """The identity that a boot of these settings showed; utilisation and patches over the image are no part of it."""
    asked = _essence(demand)
    alike = [boot for boot in checkpoint.boots if _alike(boot, options) and _essence(request_of_boot(boot)) == asked]
    alike.sort(key=lambda boot: boot.variant != demand.variant)
    return next((_of(boot) for boot in alike if boot.figures.get("autotune")), None)


def _of(boot: MeasuredBoot) -> RecordedIdentity:
    figures = boot.figures
    new = figures.get("saved_configs", 0) - figures.get("configs", 0) if "saved_configs" in figures else 0
    return RecordedIdentity(figures["autotune"], boot.name, figures.get("tuning_seconds"), new)


def _essence(demand: MemoryRequest) -> MemoryRequest:
    return replace(demand, gpu_memory_utilization=0.0, variant=None)


def _alike(boot: MeasuredBoot, options: Mapping[str, Any]) -> bool:
    """A log's echo says the model twice, as option and as positional argument."""
    named = boot.settings.get("model") or boot.settings.get("model_tag")
    wanted = options.get("model") or options.get("model_tag")
    others = all(boot.settings.get(name) == options.get(name) for name in _IDENTITY)
    return not boot.assumed and named == wanted and others


def tuning_verdict(
    before: RecordedIdentity | None, after: RecordedIdentity | None, effects: Sequence[Effect]
) -> TuningVerdict:
    """`effects` are those of the fields that differ; none means the same launch."""
    if not effects:
        return TuningVerdict("same", "nothing that is launched differs")
    if before is not None and after is not None:
        if is_same_identity(before.identity, after.identity):
            return TuningVerdict("same", f"both were recorded as {short_identity(after.identity)}")
        return TuningVerdict(
            "new", f"recorded as {short_identity(before.identity)} before, {short_identity(after.identity)} after"
        )
    for effect in effects:
        if effect.touch == "changes":
            return TuningVerdict("new", f"{_name(effect)} is part of its identity, {effect.reason}")
    for effect in effects:
        if effect.touch == "unknown":
            return TuningVerdict("unknown", f"{_name(effect)}: {effect.reason}")
    return TuningVerdict("same", "none of the fields that differ is part of its identity")


def _name(effect: Effect) -> str:
    return effect.field.rpartition(".")[2]


def effect_sentence(effect: Effect, overall: TuningVerdict, *, by_record: bool) -> str:
    """What one field does: to the launch, and to the tuning cache. `by_record`: both identities are on record."""
    if by_record and effect.touch != "keeps":
        return f"{effect.launch}; tuning cache {overall.verdict}: {overall.reason}"
    touch = {"keeps": "same", "changes": "new", "unknown": "unknown"}[effect.touch]
    return f"{effect.launch}; tuning cache {touch}: {effect.reason}"


@dataclass(frozen=True, slots=True)
class EvidencePair:
    """One figure; None on the side that has none."""

    figure: str
    unit: str
    workload: str
    before: float | None
    after: float | None

    @property
    def percent(self) -> float | None:
        """How much more `after` is."""
        if self.before is None or self.after is None or self.before == 0:
            return None
        return 100 * (self.after - self.before) / self.before


def evidence_pairs(before: Sequence[EvidenceSection], after: Sequence[EvidenceSection]) -> tuple[EvidencePair, ...]:
    """In the order of `before`, then what only `after` has. Figures on different workloads are never one pair."""
    old, new = _by_load(before), _by_load(after)
    keys = (*old, *(key for key in new if key not in old))
    return tuple(EvidencePair(*key, old.get(key), new.get(key)) for key in keys)


def _by_load(figures: Sequence[EvidenceSection]) -> dict[tuple[str, str, str], float]:
    return {(one.figure, one.unit, one.workload): one.value for one in figures}


@dataclass(frozen=True, slots=True)
class ReleaseSummary:
    """What is known of one release. `ledger` is what the record says of its settings."""

    engine_version: str | None = None
    memory: MemoryPlan | None = None
    boot_seconds: float | None = None
    tuning_seconds: float | None = None
    """How long its kernels take when nothing was tuned before."""
    recorded: RecordedIdentity | None = None
    evidence: tuple[EvidenceSection, ...] = ()
    ledger: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Costs:
    """`before` and `after` as they were known, and what follows."""

    before: ReleaseSummary
    after: ReleaseSummary
    restart: bool
    """The plans differ: going from one to the other is a launch."""
    tuning: TuningVerdict
    evidence: tuple[EvidencePair, ...]
    ledger: tuple[Diagnostic, ...]
    """What the record says of settings that only `after` has."""

    @property
    def tuning_seconds(self) -> float | None:
        """What the first boot spends on tuning, unless its cache is put in place; None where it finds one."""
        if self.tuning.verdict == "same":
            return None
        recorded = self.after.recorded
        return (recorded.tuning_seconds if recorded else None) or self.after.tuning_seconds

    @property
    def back_in_hbm_gib(self) -> float | None:
        """Weights that return from Grace to the GPU; negative when more leave it."""
        if self.before.memory is None or self.after.memory is None:
            return None
        return self.before.memory.host.offloaded_gib - self.after.memory.host.offloaded_gib

    def as_json(self) -> dict[str, Any]:
        """The first four keys are the contract's; what is not known is null."""
        sides = (self.before, self.after)
        plans = [side.memory for side in sides]
        return {
            "restart": self.restart,
            "autotune": self.tuning.verdict,
            "kv_cache_gib": [_rounded(plan.hbm.kv_cache_gib) if plan else None for plan in plans],
            "boot_seconds": [side.boot_seconds for side in sides],
            "autotune_reason": self.tuning.reason,
            "tuning_seconds": self.tuning_seconds,
            "kv_cache_basis": [plan.basis if plan else None for plan in plans],
            "offloaded_gib": [_rounded(plan.host.offloaded_gib) if plan else None for plan in plans],
            "grace_gib": [
                [_rounded(plan.host.resident_gib), _rounded(plan.host.resident_bound_gib)] if plan else None
                for plan in plans
            ],
            "evidence": [
                {"figure": one.figure, "unit": one.unit, "workload": one.workload, "values": [one.before, one.after]}
                for one in self.evidence
            ],
            "ledger": [one.as_json() for one in self.ledger],
        }


def costs(before: ReleaseSummary, after: ReleaseSummary, effects: Sequence[Effect], *, restart: bool) -> Costs:
    """`effects` are those of the fields that differ."""
    known = {(one.code, one.message) for one in before.ledger}
    return Costs(
        before=before,
        after=after,
        restart=restart,
        tuning=tuning_verdict(before.recorded, after.recorded, effects if restart else ()),
        evidence=evidence_pairs(before.evidence, after.evidence),
        ledger=tuple(one for one in after.ledger if (one.code, one.message) not in known),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
