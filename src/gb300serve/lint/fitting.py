"""The memory plan of a recipe, where everything that it needs is known from the package or from the recipe itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gb300serve.engines.vllm.view import VllmOptions
from gb300serve.fit.around import around
from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot
from gb300serve.fit.demand import Demand, demand_of, with_others
from gb300serve.fit.memory import memory_plan
from gb300serve.fit.model import GB300, MemoryPlan
from gb300serve.fit.overhead import MeasuredOverhead, measured_boots
from gb300serve.fit.sizes import sized
from gb300serve.recipe.model import Recipe

# Two boots that moved the same parameters differ by less than the smallest of them.
SAME_GIB = 0.005
_RANKS = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


@dataclass(frozen=True, slots=True)
class Fitting:
    """The plan, and the boot that failed with the same parameters moved and no longer context, where there is one."""

    plan: MemoryPlan
    failed: MeasuredBoot | None


def fitting(
    known: Checkpoint | None, repo: str, options: Mapping[str, Any], view: VllmOptions, recipe: Recipe
) -> Fitting | None:
    """None where the arithmetic does not apply: sizes unknown, another GPU than the GB300, or several of them.

    What nothing comparable was measured for has the verdict `unknown`.
    """
    gpus = recipe.container.gpus
    elsewhere = gpus is not None and gpus.by == "name" and gpus.values != ("GB300",)
    if elsewhere or recipe.nodes > 1 or any(options.get(key) not in (None, 1) for key in _RANKS):
        return None
    checkpoint = sized(known, recipe.memory, repo)
    if checkpoint is None:
        return None
    variant = checkpoint.variant(recipe.container.env)
    asked = demand_of(options, recipe.engine.version, variant, seen=view)
    return _fitting(checkpoint, with_others(asked, around(recipe, variant)))


# Many recipes of a lane ask for the same memory.
@lru_cache(maxsize=1024)
def _fitting(checkpoint: Checkpoint, asked: Demand) -> Fitting:
    plan = memory_plan(checkpoint, asked)
    return Fitting(plan, _failed(measured_boots(checkpoint, GB300.total_gib), plan))


def _failed(boots: tuple[MeasuredOverhead, ...], plan: MemoryPlan) -> MeasuredBoot | None:
    """The failed boot nearest in length that moved the same, for a plan that is refused."""
    if plan.verdict != "refused" or plan.hbm.kv_cache_gib is None:
        return None
    alike = [
        one
        for one in boots
        if not one.boot.booted
        and abs(one.moved_gib - plan.offload.moved_gib) < SAME_GIB
        and (one.demand.max_model_len or 0) <= plan.max_model_len
    ]
    return max(alike, key=lambda one: one.demand.max_model_len or 0).boot if alike else None
