"""The cost of changing from one release to another: restart, tuning, memory, time; and the evidence of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gb300serve.autotune.identity import Effect
from gb300serve.autotune.sets import is_same_identity, short_identity
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot
from gb300serve.fit.memory import MemoryPlan, request_of_boot
from gb300serve.fit.request import MemoryRequest
from gb300serve.recipe.model import EvidenceSection

Autotune = Literal["same", "new", "unknown"]
# Options that affect the identity but not the memory; the model's path is compared separately.
_IDENTITY = ("trust_remote_code", "revision", "generation_config")


@dataclass(frozen=True, slots=True)
class RecordedIdentity:
    """The identity (the beginning of the directory's name) of a recorded boot with exactly these settings."""

    identity: str
    boot: str
    tuning_seconds: float | None = None
    new_configs: int = 0
    """Kernels that the boot tuned in addition to those it loaded."""


@dataclass(frozen=True, slots=True)
class TuningVerdict:
    """The verdict and its reason."""

    verdict: Autotune
    reason: str


def recorded_identity(
    checkpoint: Checkpoint, request: MemoryRequest, options: Mapping[str, Any]
) -> RecordedIdentity | None:
    """The identity of a recorded boot with these settings; utilization and patches over the image do not affect it."""
    wanted = _relevant(request)
    same = [b for b in checkpoint.boots if _has_options(b, options) and _relevant(request_of_boot(b)) == wanted]
    same.sort(key=lambda boot: boot.variant != request.variant)
    return next((_identity_of(boot) for boot in same if boot.figures.get("autotune")), None)


def tuning_range(checkpoint: Checkpoint, request: MemoryRequest) -> tuple[float, float] | None:
    """Seconds that kernel tuning took in boots like this one, from an empty cache; None if no boot is recorded.

    It depends on where the experts are: a hook has moved the hot ones into HBM by then.
    """
    whole = [
        boot for boot in checkpoint.boots if "tuning_seconds" in boot.figures and "saved_configs" not in boot.figures
    ]
    placed = [boot for boot in whole if boot.variant == request.variant]
    exact = [boot for boot in placed if _relevant(request_of_boot(boot)) == _relevant(request)]
    same_version = [boot for boot in placed if boot.engine_version == request.engine_version]
    seconds = [float(boot.figures["tuning_seconds"]) for boot in exact or same_version or placed]
    if request.variant is None and not exact and checkpoint.autotune.tuning_seconds:
        seconds.append(checkpoint.autotune.tuning_seconds)
    return (min(seconds), max(seconds)) if seconds else None


def _identity_of(boot: MeasuredBoot) -> RecordedIdentity:
    figures = boot.figures
    new = figures.get("saved_configs", 0) - figures.get("configs", 0) if "saved_configs" in figures else 0
    return RecordedIdentity(figures["autotune"], boot.name, figures.get("tuning_seconds"), new)


def _relevant(request: MemoryRequest) -> MemoryRequest:
    return replace(request, gpu_memory_utilization=0.0, variant=None)


def _has_options(boot: MeasuredBoot, options: Mapping[str, Any]) -> bool:
    """A log prints the model twice: as an option and as a positional argument."""
    named = boot.settings.get("model") or boot.settings.get("model_tag")
    wanted = options.get("model") or options.get("model_tag")
    others = all(boot.settings.get(name) == options.get(name) for name in _IDENTITY)
    return not boot.assumed and named == wanted and others


def tuning_verdict(
    before: RecordedIdentity | None, after: RecordedIdentity | None, effects: Sequence[Effect]
) -> TuningVerdict:
    """`effects` are those of the fields that differ; without any, the launch is the same."""
    if not effects:
        return TuningVerdict("same", "the launch does not differ")
    if before is not None and after is not None:
        old, new = short_identity(before.identity), short_identity(after.identity)
        if is_same_identity(before.identity, after.identity):
            return TuningVerdict("same", f"both were recorded as {new}")
        return TuningVerdict("new", f"recorded as {old} before, {new} after")
    by_identity = {effect.identity: effect for effect in reversed(effects)}
    if (effect := by_identity.get("changes")) is not None:
        return TuningVerdict("new", f"{_name(effect)} is part of the identity: {effect.reason}")
    if (effect := by_identity.get("unknown")) is not None:
        return TuningVerdict("unknown", f"{_name(effect)}: {effect.reason}")
    return TuningVerdict("same", "no field that differs is part of the identity")


def _name(effect: Effect) -> str:
    return effect.field.rpartition(".")[2]


def effect_sentence(effect: Effect, overall: TuningVerdict, *, by_record: bool) -> str:
    """The effect of a field on the launch and on the tuning cache. `by_record`: both identities are recorded."""
    if by_record and effect.identity != "keeps":
        return f"{effect.launch}; tuning cache {overall.verdict}: {overall.reason}"
    verdict = {"keeps": "same", "changes": "new", "unknown": "unknown"}[effect.identity]
    return f"{effect.launch}; tuning cache {verdict}: {effect.reason}"


@dataclass(frozen=True, slots=True)
class EvidencePair:
    """One figure of both releases, None if a release lacks it."""

    figure: str
    unit: str
    workload: str
    before: float | None
    after: float | None

    @property
    def percent(self) -> float | None:
        """The increase from `before` to `after`."""
        if self.before is None or self.after is None or self.before == 0:
            return None
        return 100 * (self.after - self.before) / self.before


def evidence_pairs(before: Sequence[EvidenceSection], after: Sequence[EvidenceSection]) -> tuple[EvidencePair, ...]:
    """In the order of `before`, then those that only `after` has. Figures of different workloads are never paired."""
    old, new = _by_load(before), _by_load(after)
    keys = (*old, *(key for key in new if key not in old))
    return tuple(EvidencePair(*key, old.get(key), new.get(key)) for key in keys)


def _by_load(figures: Sequence[EvidenceSection]) -> dict[tuple[str, str, str], float]:
    return {(item.figure, item.unit, item.workload): item.value for item in figures}


@dataclass(frozen=True, slots=True)
class ReleaseSummary:
    """The facts about one release. `ledger` has the recorded findings about its settings."""

    engine_version: str | None = None
    memory: MemoryPlan | None = None
    boot_seconds: float | None = None
    tuning_seconds: tuple[float, float] | None = None
    """How long its kernels take to tune with an empty cache: the shortest and the longest such boot."""
    recorded: RecordedIdentity | None = None
    evidence: tuple[EvidenceSection, ...] = ()
    ledger: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Costs:
    """The facts about both releases, and the costs that follow."""

    before: ReleaseSummary
    after: ReleaseSummary
    restart: bool
    """The plans differ, so the change requires a launch."""
    tuning: TuningVerdict
    evidence: tuple[EvidencePair, ...]
    ledger: tuple[Diagnostic, ...]
    """Recorded findings that apply only to `after`."""

    @property
    def tuning_seconds(self) -> tuple[float, float] | None:
        """How long the first boot tunes, unless its cache is seeded; None if it finds a cache."""
        if self.tuning.verdict == "same":
            return None
        recorded = self.after.recorded.tuning_seconds if self.after.recorded else None
        return (recorded, recorded) if recorded else self.after.tuning_seconds

    @property
    def back_in_hbm_gib(self) -> float | None:
        """Weights that return from Grace to the GPU; negative if more are offloaded."""
        if self.before.memory is None or self.after.memory is None:
            return None
        return self.before.memory.host.offloaded_gib - self.after.memory.host.offloaded_gib

    def as_json(self) -> dict[str, Any]:
        """Unknown figures are null."""
        sides = (self.before, self.after)
        plans = [side.memory for side in sides]
        return {
            "restart": self.restart,
            "autotune": self.tuning.verdict,
            "kv_cache_gib": [_rounded(plan.hbm.kv_cache_gib) if plan else None for plan in plans],
            "boot_seconds": [side.boot_seconds for side in sides],
            "autotune_reason": self.tuning.reason,
            "tuning_seconds": self.tuning_seconds[1] if self.tuning_seconds else None,
            "tuning_seconds_range": self.tuning_seconds and list(self.tuning_seconds),
            "kv_cache_basis": [plan.basis if plan else None for plan in plans],
            "offloaded_gib": [_rounded(plan.host.offloaded_gib) if plan else None for plan in plans],
            "grace_gib": [
                [_rounded(plan.host.least_gib), _rounded(plan.host.resident_gib)] if plan else None for plan in plans
            ],
            "evidence": [
                {"figure": p.figure, "unit": p.unit, "workload": p.workload, "values": [p.before, p.after]}
                for p in self.evidence
            ],
            "ledger": [finding.as_json() for finding in self.ledger],
        }


def costs(before: ReleaseSummary, after: ReleaseSummary, effects: Sequence[Effect], *, restart: bool) -> Costs:
    """`effects` are those of the fields that differ."""
    known = {(finding.code, finding.message) for finding in before.ledger}
    return Costs(
        before=before,
        after=after,
        restart=restart,
        tuning=tuning_verdict(before.recorded, after.recorded, effects if restart else ()),
        evidence=evidence_pairs(before.evidence, after.evidence),
        ledger=tuple(finding for finding in after.ledger if (finding.code, finding.message) not in known),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
