"""The answer to `will it boot`: the plan, measured and computed side by side, both memories judged."""

from dataclasses import dataclass, replace

from gb300serve.fit.checkpoint import Checkpoint
from gb300serve.fit.demand import Demand
from gb300serve.fit.host import STATION, Grace, host_verdict
from gb300serve.fit.memory import memory_plan
from gb300serve.fit.model import GB300, MemoryPlan, Verdict
from gb300serve.fit.nearest import Nearest, nearest

_WORST: tuple[Verdict, ...] = ("refused", "unknown", "short", "fits")


@dataclass(frozen=True, slots=True)
class FitResult:
    """`plan` is what is shown: measured where a boot of exactly this memory was, else `computed`."""

    plan: MemoryPlan
    computed: MemoryPlan
    demand: Demand
    grace: Grace
    host_verdict: Verdict
    nearest: tuple[Nearest, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worse of both memories."""
        return min(self.plan.verdict, self.host_verdict, key=_WORST.index)

    @property
    def measured_gib(self) -> float | None:
        """The KV cache that a boot of exactly this memory logged."""
        return self.plan.hbm.kv_cache_gib if self.plan.basis == "measured" else None

    @property
    def margin_gib(self) -> float | None:
        """KV cache beyond one request of the full length."""
        left = self.plan.hbm.kv_cache_gib
        return None if left is None else left - self.plan.needed_gib


def answer(checkpoint: Checkpoint, demand: Demand, *, changed: bool = False, grace: Grace = STATION) -> FitResult:
    """`changed`: by `--set`, so that no boot was of exactly this launch and everything is computed."""
    computed = memory_plan(checkpoint, demand, GB300, grace.available_gib, look_up=False)
    plan = computed if changed else memory_plan(checkpoint, demand, GB300, grace.available_gib)
    return FitResult(plan, computed, demand, grace, host_verdict(plan.host, grace))


def advised(checkpoint: Checkpoint, found: FitResult) -> FitResult:
    """The answer with the nearest settings that would fit, where these do not: hundreds of plans, 40 ms."""
    if found.verdict not in ("refused", "short"):
        return found
    return replace(found, nearest=nearest(checkpoint, found.demand, found.grace))
