"""What going from one release to another costs: a restart, tuning, memory, time; and what was measured of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gb300serve.compare.effects import Effect
from gb300serve.compare.evidence import Pair, pairs
from gb300serve.compare.tuning import Recorded, TuningVerdict, tuning
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.fit.model import MemoryPlan
from gb300serve.recipe.model import EvidenceSection


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one release. `ledger` is what the record says of its settings."""

    engine_version: str | None = None
    memory: MemoryPlan | None = None
    boot_seconds: float | None = None
    tuning_seconds: float | None = None
    """How long its kernels take when nothing was tuned before."""
    recorded: Recorded | None = None
    evidence: tuple[EvidenceSection, ...] = ()
    ledger: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Costs:
    """`before` and `after` as they were known, and what follows."""

    before: Facts
    after: Facts
    restart: bool
    """The plans differ: going from one to the other is a launch."""
    tuning: TuningVerdict
    evidence: tuple[Pair, ...]
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


def costs(before: Facts, after: Facts, effects: Sequence[Effect], *, restart: bool) -> Costs:
    """`effects` are those of the fields that differ."""
    known = {(one.code, one.message) for one in before.ledger}
    return Costs(
        before=before,
        after=after,
        restart=restart,
        tuning=tuning(before.recorded, after.recorded, effects if restart else ()),
        evidence=pairs(before.evidence, after.evidence),
        ledger=tuple(one for one in after.ledger if (one.code, one.message) not in known),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
