"""The one unknown of the arithmetic: F, everything that is neither KV cache nor moved, learned from measured boots.

KV = utilisation x total + moved - F, so every boot whose KV cache was measured gives its F.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from gb300serve.fit.checkpoint import GIB, Basis, Checkpoint, Constant, MeasuredBoot
from gb300serve.fit.demand import Demand, demand_of, with_others
from gb300serve.fit.offload import offload


@dataclass(frozen=True, slots=True)
class MeasuredOverhead:
    """A boot with the demand that it had, the GiB of its weights (host tables apart), those it moved, and its F."""

    boot: MeasuredBoot
    demand: Demand
    shape: tuple[object, ...]
    weights_gib: float
    moved_gib: float
    constant: float


# Logs print GiB with two decimals.
PRINTED_GIB = 0.01

SHAPE = (
    "patch",
    "speculation",
    "draft_tokens",
    "max_num_seqs",
    "engine_version",
    "kv_cache_dtype",
    "enforce_eager",
    "max_num_batched_tokens",
    "host_tables",
    "other_options",
)


# What changes F, the most expensive to get wrong first; the length stands apart because F is linear in it.
def _shape(demand: Demand) -> tuple[object, ...]:
    drafts = demand.speculation
    return (
        demand.variant,
        drafts.method if drafts else None,
        drafts.tokens if drafts else None,
        demand.max_num_seqs,
        demand.engine_version,
        demand.kv_cache_dtype,
        demand.enforce_eager,
        demand.max_num_batched_tokens,
        demand.host_tables,
        demand.others,
    )


# 5 ms for a dozen boots: lint asks once a file.
@lru_cache(maxsize=8)
def measured_boots(checkpoint: Checkpoint, total_gib: float) -> tuple[MeasuredOverhead, ...]:
    """The boots of a checkpoint whose KV cache was measured, on a GPU of `total_gib`."""
    found = []
    for boot in checkpoint.boots:
        available = boot.figures.get("kv_cache_gib")
        if available is None:
            continue
        demand = demand_at(boot)
        moved = _moved(checkpoint, demand, boot)
        constant = demand.gpu_memory_utilization * total_gib + moved - available
        found.append(MeasuredOverhead(boot, demand, _shape(demand), weights_gib(checkpoint, demand), moved, constant))
    return tuple(found)


def weights_gib(checkpoint: Checkpoint, demand: Demand) -> float:
    """What the GPU holds of the checkpoint before anything is moved: all of it, or all but the tables of the host."""
    return (checkpoint.weights_bytes if demand.host_tables else checkpoint.bytes) / GIB


def demand_at(boot: MeasuredBoot) -> Demand:
    """What a boot asked of memory."""
    return with_others(demand_of(boot.settings, boot.engine_version, boot.variant), boot.around)


def _moved(checkpoint: Checkpoint, demand: Demand, boot: MeasuredBoot) -> float:
    """What the staircase says; the log's own figure (two decimals) where it says otherwise."""
    stairs = offload(checkpoint.parameters, demand.cpu_offload_gb, demand.cpu_offload_params).moved_gib
    logged = float(boot.figures.get("offloaded_gib", stairs))
    return stairs if abs(stairs - logged) < PRINTED_GIB else logged


def shape_of(demand: Demand) -> dict[str, object]:
    """What F depends on, by name."""
    return dict(zip(SHAPE, _shape(demand), strict=True)) | {"max_model_len": demand.max_model_len}


def same_boot(boots: Sequence[MeasuredOverhead], demand: Demand, moved_gib: float) -> MeasuredOverhead | None:
    """The boot of the same memory: same shape, length, schedule and utilisation, and the same parameters moved."""

    shape = _shape(demand)

    def same(one: MeasuredOverhead) -> bool:
        drafts, wanted = one.demand.speculation, demand.speculation
        return (
            one.shape == shape
            and one.demand.max_model_len == demand.max_model_len
            and one.demand.gpu_memory_utilization == demand.gpu_memory_utilization
            and (drafts.schedule if drafts else ()) == (wanted.schedule if wanted else ())
            and abs(one.moved_gib - moved_gib) < 0.005
            and not one.boot.assumed
        )

    return next((one for one in boots if same(one)), None)


def _mean(boots: Sequence[MeasuredOverhead], basis: Basis) -> Constant:
    average = sum(one.constant for one in boots) / len(boots)
    return Constant(average, basis, tuple(one.boot.name for one in boots))


def _slope(boots: Sequence[MeasuredOverhead]) -> float:
    """GiB of F per token of context, between the shortest and the longest measured; 0 with one length."""
    lengths = sorted({one.demand.max_model_len or 0 for one in boots})
    if len(lengths) < 2:
        return 0.0
    low, high = (
        _mean([one for one in boots if one.demand.max_model_len == edge], "assumed")
        for edge in (lengths[0], lengths[-1])
    )
    return (high.gib - low.gib) / (lengths[-1] - lengths[0])


def _carried(
    near: Sequence[MeasuredOverhead], boots: Sequence[MeasuredOverhead], length: int, weights: float
) -> Constant:
    """F of the nearest boots, carried to another context length by their own slope, else by that of any shape, and to
    other weights by their difference. It is never less than the weights; where a boot showed that the engine leaves
    a part of those out (the drafter, without speculation), never less than without that part."""
    shapes = {one.shape for one in boots}
    families = [near, *([one for one in boots if one.shape == shape] for shape in sorted(shapes, key=str))]
    slope = next((steep for steep in map(_slope, families) if steep), 0.0)
    carried = [
        one.constant + slope * (length - (one.demand.max_model_len or 0)) + weights - one.weights_gib for one in near
    ]
    average = sum(carried) / len(carried)
    least = weights + min(0.0, *(one.constant - one.weights_gib for one in boots))
    return Constant(max(average, least), "assumed", tuple(one.boot.name for one in near))


def _nearest(boots: Sequence[MeasuredOverhead], demand: Demand) -> list[MeasuredOverhead]:
    def alike(one: MeasuredOverhead) -> int:
        pairs = zip(one.shape, _shape(demand), strict=True)
        return sum(mine == wanted for mine, wanted in pairs)

    best = max(map(alike, boots))
    return [one for one in boots if alike(one) == best]


def constant_for(boots: Sequence[MeasuredOverhead], demand: Demand, weights: float) -> Constant | None:
    """F for a demand that states its context length, of `weights` GiB; None when nothing was ever measured."""
    if not boots:
        return None
    length = demand.max_model_len or 0
    shape = _shape(demand)
    alike = [one for one in boots if one.shape == shape]
    exact = [one for one in alike if one.demand.max_model_len == length]
    exact = [one for one in exact if one.boot.learned] or exact
    if exact:
        return _mean(exact, "computed" if any(not one.boot.assumed for one in exact) else "assumed")
    return _carried(alike or _nearest(boots, demand), boots, length, weights)
