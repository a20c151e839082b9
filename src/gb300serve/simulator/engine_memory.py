"""What fits, as the stand-in's log tells it."""

from dataclasses import replace

from gb300serve.fit.kv import longest_context, needed_gib, tokens_in
from gb300serve.fit.memory import AUTO, memory_plan
from gb300serve.fit.model import MemoryPlan
from gb300serve.simulator.engine_settings import Settings
from gb300serve.simulator.engine_unknown import ACTIVATIONS_GIB


def memory_of(settings: Settings) -> MemoryPlan:
    """The memory plan; a checkpoint without measured boots gets a plain estimate, so that it can be rehearsed."""
    plan = memory_plan(settings.checkpoint, settings.demand)
    if plan.hbm.kv_cache_gib is not None:
        return plan
    cache = settings.checkpoint.kv_cache
    left = plan.hbm.usable_gib - plan.hbm.weights_gib - ACTIVATIONS_GIB
    length = plan.max_model_len
    if settings.demand.max_model_len == AUTO and left < needed_gib(cache, length):
        length = longest_context(cache, left) or length
    needed = needed_gib(cache, length)
    tokens = tokens_in(cache, left, length) if left > 0 else None
    return replace(
        plan,
        verdict="fits" if left >= needed else "refused",
        hbm=replace(plan.hbm, overhead_gib=ACTIVATIONS_GIB, kv_cache_gib=left),
        max_model_len=length,
        needed_gib=needed,
        kv_cache_tokens=tokens,
        concurrency_at_max_len=tokens / length if tokens else None,
        estimated_max_model_len=None if left >= needed else longest_context(cache, left),
    )
