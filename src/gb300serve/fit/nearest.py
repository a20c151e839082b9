"""The nearest settings that would fit, where these do not."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, floor

from gb300serve.fit.checkpoint import Checkpoint
from gb300serve.fit.demand import Demand
from gb300serve.fit.host import Grace, host_verdict
from gb300serve.fit.memory import memory_plan
from gb300serve.fit.model import MemoryPlan

# The highest share of the GPU that ever booted: the driver and CUDA's own context need the rest.
HIGHEST_UTILIZATION = 0.97
MOST_OFFLOAD_GIB = 400


@dataclass(frozen=True, slots=True)
class Nearest:
    """One option changed, and the plan that it gives."""

    option: str
    value: int | float
    plan: MemoryPlan


def nearest(checkpoint: Checkpoint, demand: Demand, grace: Grace) -> tuple[Nearest, ...]:
    """The smallest change of each option that makes the launch fit; options that cannot are left out."""
    tries = (_more_offload(demand), _more_utilization(demand), _less_context(checkpoint, demand), _less_offload(demand))
    found = (next(_fitting(checkpoint, ladder, grace), None) for ladder in tries)
    return tuple(one for one in found if one is not None)


Rung = tuple[str, int | float, Demand]


def _fitting(checkpoint: Checkpoint, ladder: Iterator[Rung], grace: Grace) -> Iterator[Nearest]:
    for option, value, demand in ladder:
        plan = memory_plan(checkpoint, demand, look_up=False)
        # A shortened context is the engine's own advice: it boots with what it needs and no more.
        enough = ("fits", "short") if option == "max_model_len" else ("fits",)
        if plan.verdict in enough and host_verdict(plan.host, grace) == "fits":
            yield Nearest(option, value, plan)


def _more_offload(demand: Demand) -> Iterator[Rung]:
    if demand.offload_backend in ("auto", "uva"):
        for asked in range(floor(demand.cpu_offload_gb) + 1, MOST_OFFLOAD_GIB):
            yield "cpu_offload_gb", asked, replace(demand, cpu_offload_gb=asked)


def _less_offload(demand: Demand) -> Iterator[Rung]:
    for asked in range(min(ceil(demand.cpu_offload_gb) - 1, MOST_OFFLOAD_GIB), 0, -1):
        yield "cpu_offload_gb", asked, replace(demand, cpu_offload_gb=asked)


def _more_utilization(demand: Demand) -> Iterator[Rung]:
    highest = round(100 * HIGHEST_UTILIZATION)
    for percent in range(floor(100 * demand.gpu_memory_utilization + 1e-6) + 1, highest + 1):
        yield "gpu_memory_utilization", percent / 100, replace(demand, gpu_memory_utilization=percent / 100)


def _less_context(checkpoint: Checkpoint, demand: Demand) -> Iterator[Rung]:
    # A boot of this memory tells its own limit: 123,264 tokens where the arithmetic would say 129,088.
    asked = memory_plan(checkpoint, demand)
    length = asked.estimated_max_model_len or asked.max_model_len // 2
    while length >= checkpoint.kv_cache.block_tokens:
        if length < asked.max_model_len:
            yield "max_model_len", length, replace(demand, max_model_len=length)
        length //= 2
