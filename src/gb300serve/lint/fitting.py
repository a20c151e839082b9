"""The memory plan of a recipe, where everything that it needs is known from the package."""

from dataclasses import dataclass

from gb300serve.engines.vllm.view import VllmOptions
from gb300serve.fit.checkpoint import Boot, Checkpoint
from gb300serve.fit.demand import demand
from gb300serve.fit.memory import memory_plan
from gb300serve.fit.model import GB300, MemoryPlan
from gb300serve.fit.overhead import Measured, measured_boots
from gb300serve.recipe.model import Recipe

# Two boots that moved the same parameters differ by less than the smallest of them.
SAME_GIB = 0.005


@dataclass(frozen=True, slots=True)
class Fitting:
    """The plan, and the boot that failed with the same parameters moved and no longer context, where there is one."""

    plan: MemoryPlan
    failed: Boot | None


def fitting(checkpoint: Checkpoint, view: VllmOptions, recipe: Recipe) -> Fitting | None:
    """None where the arithmetic does not apply: another GPU than the GB300, several of them, or an overhead of its own.

    What nothing comparable was measured for has the verdict `unknown`.
    """
    gpus = recipe.container.gpus
    elsewhere = gpus is not None and gpus.by == "name" and gpus.values != ("GB300",)
    if elsewhere or view.tensor_parallel_size > 1 or view.data_parallel_size > 1 or recipe.memory is not None:
        return None
    asked = demand(view, recipe.engine.version, checkpoint.variant(recipe.container.env))
    plan = memory_plan(checkpoint, asked)
    return Fitting(plan, _failed(measured_boots(checkpoint, GB300.total_gib), plan))


def _failed(boots: tuple[Measured, ...], plan: MemoryPlan) -> Boot | None:
    """The failed boot nearest in length that moved at least as much, for a plan that is refused."""
    if plan.verdict != "refused":
        return None
    alike = [
        one
        for one in boots
        if not one.boot.booted
        and abs(one.moved_gib - plan.offload.moved_gib) < SAME_GIB
        and (one.demand.max_model_len or 0) <= plan.max_model_len
        and plan.hbm.kv_cache_gib is not None
    ]
    return max(alike, key=lambda one: one.demand.max_model_len or 0).boot if alike else None
