"""The tuning cache of two releases: the same, a new one, or unknown; a recorded identity goes before any reasoning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gb300serve.autotune.expect import same_identity, short
from gb300serve.compare.effects import Effect
from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot
from gb300serve.fit.demand import Demand
from gb300serve.fit.overhead import demand_at

Autotune = Literal["same", "new", "unknown"]
# Options without a part in the memory that have one in the identity; the model's path stands apart.
_IDENTITY = ("trust_remote_code", "revision", "generation_config")


@dataclass(frozen=True, slots=True)
class Recorded:
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


def recorded(checkpoint: Checkpoint, demand: Demand, options: Mapping[str, Any]) -> Recorded | None:
    """The identity that a boot of these settings showed; utilisation and patches over the image are no part of it."""
    asked = _essence(demand)
    alike = [boot for boot in checkpoint.boots if _alike(boot, options) and _essence(demand_at(boot)) == asked]
    alike.sort(key=lambda boot: boot.variant != demand.variant)
    return next((_of(boot) for boot in alike if boot.figures.get("autotune")), None)


def _of(boot: MeasuredBoot) -> Recorded:
    figures = boot.figures
    new = figures.get("saved_configs", 0) - figures.get("configs", 0) if "saved_configs" in figures else 0
    return Recorded(figures["autotune"], boot.name, figures.get("tuning_seconds"), new)


def _essence(demand: Demand) -> Demand:
    return replace(demand, gpu_memory_utilization=0.0, variant=None)


def _alike(boot: MeasuredBoot, options: Mapping[str, Any]) -> bool:
    """A log's echo says the model twice, as option and as positional argument."""
    named = boot.settings.get("model") or boot.settings.get("model_tag")
    wanted = options.get("model") or options.get("model_tag")
    others = all(boot.settings.get(name) == options.get(name) for name in _IDENTITY)
    return not boot.assumed and named == wanted and others


def tuning(before: Recorded | None, after: Recorded | None, effects: Sequence[Effect]) -> TuningVerdict:
    """`effects` are those of the fields that differ; none means the same launch."""
    if not effects:
        return TuningVerdict("same", "nothing that is launched differs")
    if before is not None and after is not None:
        if same_identity(before.identity, after.identity):
            return TuningVerdict("same", f"both were recorded as {short(after.identity)}")
        return TuningVerdict("new", f"recorded as {short(before.identity)} before, {short(after.identity)} after")
    for effect in effects:
        if effect.touch == "changes":
            return TuningVerdict("new", f"{_name(effect)} is part of its identity, {effect.reason}")
    for effect in effects:
        if effect.touch == "unknown":
            return TuningVerdict("unknown", f"{_name(effect)}: {effect.reason}")
    return TuningVerdict("same", "none of the fields that differ is part of its identity")


def _name(effect: Effect) -> str:
    return effect.field.rpartition(".")[2]


def said(effect: Effect, overall: TuningVerdict, *, by_record: bool) -> str:
    """What one field does: to the launch, and to the tuning cache. `by_record`: both identities are on record."""
    if by_record and effect.touch != "keeps":
        return f"{effect.launch}; tuning cache {overall.verdict}: {overall.reason}"
    touch = {"keeps": "same", "changes": "new", "unknown": "unknown"}[effect.touch]
    return f"{effect.launch}; tuning cache {touch}: {effect.reason}"
