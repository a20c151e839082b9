"""Will it boot, and with how much KV cache: the whole arithmetic for one launch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from gb300serve.fit.checkpoint import GIB, Basis, Checkpoint, Constant, KvCache, MeasuredBoot
from gb300serve.fit.model import GB300, Hbm, HbmPlan, HostPlan, MemoryPlan, Verdict
from gb300serve.fit.request import Demand, OffloadResult, demand_of, offload, rounded_up, with_others


def needed_gib(cache: KvCache, tokens: int) -> float:
    """KV cache that one request of `tokens` needs."""
    return cache.fixed_gib + cache.bytes_per_token * tokens / GIB


def tokens_in(cache: KvCache, available_gib: float, max_model_len: int) -> int:
    """The pool as the engine reports it: whole requests of `max_model_len`, times that length."""
    return int(available_gib / needed_gib(cache, max_model_len) * max_model_len)


def longest_context(cache: KvCache, available_gib: float) -> int | None:
    """The longest request that fits, in whole blocks; None when not even one block does."""
    blocks = int((available_gib - cache.fixed_gib) * GIB / cache.bytes_per_token) // cache.block_tokens
    return blocks * cache.block_tokens if blocks > 0 else None


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
        moved = _moved_at_boot(checkpoint, demand, boot)
        constant = demand.gpu_memory_utilization * total_gib + moved - available
        found.append(MeasuredOverhead(boot, demand, _shape(demand), weights_gib(checkpoint, demand), moved, constant))
    return tuple(found)


def weights_gib(checkpoint: Checkpoint, demand: Demand) -> float:
    """What the GPU holds of the checkpoint before anything is moved: all of it, or all but the tables of the host."""
    return (checkpoint.weights_bytes if demand.host_tables else checkpoint.bytes) / GIB


def demand_at(boot: MeasuredBoot) -> Demand:
    """What a boot asked of memory."""
    return with_others(demand_of(boot.settings, boot.engine_version, boot.variant), boot.around)


def _moved_at_boot(checkpoint: Checkpoint, demand: Demand, boot: MeasuredBoot) -> float:
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


# Boots of one setting differ by 0.02 GiB and a patch cost 0.13: less than this to spare may fail on another day.
SPARE_GIB = 0.15
AUTO = -1


@dataclass(frozen=True, slots=True)
class _Cache:
    """The KV cache in GiB, its tokens where a boot reported them, and on what it stands."""

    gib: float | None
    tokens: int | None
    basis: Basis
    boots: tuple[str, ...] = ()
    shared_gb: float | None = None


def memory_plan(
    checkpoint: Checkpoint,
    demand: Demand,
    hbm: Hbm = GB300,
    host_available_gib: float | None = None,
    *,
    look_up: bool = True,
) -> MemoryPlan:
    """What this launch needs and leaves; `max_model_len` -1 shortens the context until it fits.

    `look_up`: a boot of the same memory answers for it; otherwise everything is computed.
    """
    moved = _moved(checkpoint, demand.cpu_offload_gb if demand.offloads else 0.0, demand.cpu_offload_params)
    length = _longest_asked(checkpoint, demand)
    asked = replace(demand, max_model_len=length)
    cache = (_looked_up(checkpoint, asked, moved, hbm) if look_up else None) or _cache(checkpoint, asked, moved, hbm)
    if demand.max_model_len == AUTO:
        length = _shortened(checkpoint, length, cache.gib)
    needed = needed_gib(checkpoint.kv_cache, length)
    side = _hbm(checkpoint, demand, moved, cache.gib, hbm)
    fits = side.weights_gib < hbm.total_gib
    tokens, concurrency = _pool(checkpoint, cache, length)
    return MemoryPlan(
        verdict=_verdict(cache.gib, side.usable_gib - side.weights_gib, needed, weights_fit=fits),
        hbm=side,
        host=replace(_host(checkpoint, demand, moved, host_available_gib), measured_shared_gb=cache.shared_gb),
        offload=moved,
        max_model_len=length,
        needed_gib=needed,
        kv_cache_tokens=tokens,
        concurrency_at_max_len=concurrency,
        estimated_max_model_len=_estimate(checkpoint, cache.gib, needed),
        weights_fit=fits,
        basis=cache.basis,
        boots=cache.boots,
    )


# A walk over every parameter: a lint of many recipes asks for the same few offloads again and again.
@lru_cache(maxsize=256)
def _moved(checkpoint: Checkpoint, asked_gib: float, patterns: tuple[str, ...]) -> OffloadResult:
    return offload(checkpoint.parameters, asked_gib, patterns)


def _longest_asked(checkpoint: Checkpoint, demand: Demand) -> int:
    asked = demand.max_model_len
    return checkpoint.max_position_embeddings if asked is None or asked == AUTO else asked


def _shortened(checkpoint: Checkpoint, length: int, available_gib: float | None) -> int:
    """`--max-model-len auto`: the longest context that fits, or the model's own."""
    if available_gib is None or available_gib >= needed_gib(checkpoint.kv_cache, length):
        return length
    return longest_context(checkpoint.kv_cache, available_gib) or length


def _looked_up(checkpoint: Checkpoint, demand: Demand, moved: OffloadResult, hbm: Hbm) -> _Cache | None:
    if demand.kv_cache_memory_bytes is not None:
        return None
    same = same_boot(measured_boots(checkpoint, hbm.total_gib), demand, moved.moved_gib)
    if same is None:
        return None
    figures = same.boot.figures
    tokens, shared = figures.get("kv_cache_tokens"), figures.get("host_shared_gb")
    return _Cache(figures["kv_cache_gib"], tokens, "measured", (same.boot.name,), shared)


def _cache(checkpoint: Checkpoint, demand: Demand, moved: OffloadResult, hbm: Hbm) -> _Cache:
    if demand.kv_cache_memory_bytes is not None:
        return _Cache(demand.kv_cache_memory_bytes / GIB, None, "computed")
    constant = _constant(checkpoint, demand, hbm)
    if constant is None:
        return _Cache(None, None, "assumed")
    left = demand.gpu_memory_utilization * hbm.total_gib + moved.moved_gib - constant.gib
    return _Cache(left, None, constant.basis, constant.boots)


def _constant(checkpoint: Checkpoint, demand: Demand, hbm: Hbm) -> Constant | None:
    """F as it was stated for this launch, else from boots of its shape, else what comes near."""
    stated = checkpoint.overhead
    if stated is not None and stated.basis == "computed":
        return stated
    found = constant_for(measured_boots(checkpoint, hbm.total_gib), demand, weights_gib(checkpoint, demand))
    return found if stated is None or (found is not None and found.basis == "computed") else stated


def _hbm(checkpoint: Checkpoint, demand: Demand, moved: OffloadResult, cache_gib: float | None, hbm: Hbm) -> HbmPlan:
    usable = demand.gpu_memory_utilization * hbm.total_gib
    weights = weights_gib(checkpoint, demand) - moved.moved_gib
    overhead = None if cache_gib is None else usable - weights - cache_gib
    return HbmPlan(hbm.visible_gib, usable, weights, overhead, cache_gib)


def _host(checkpoint: Checkpoint, demand: Demand, moved: OffloadResult, available_gib: float | None) -> HostPlan:
    tables = [table.bytes for table in checkpoint.host_tables] if demand.host_tables else []
    rounded = moved.rounded_bytes + sum(map(rounded_up, tables))
    return HostPlan(
        asked_gib=demand.cpu_offload_gb,
        offloaded_gib=moved.moved_gib,
        engram_gib=sum(tables) / GIB,
        resident_gib=(moved.moved_bytes + sum(tables)) / GIB,
        resident_bound_gib=rounded / GIB,
        available_gib=available_gib,
    )


def _pool(checkpoint: Checkpoint, cache: _Cache, length: int) -> tuple[int | None, float | None]:
    if cache.gib is None or cache.gib <= 0:
        return None, None
    tokens = cache.tokens or tokens_in(checkpoint.kv_cache, cache.gib, length)
    return tokens, tokens / length if length else None


def _estimate(checkpoint: Checkpoint, available_gib: float | None, needed: float) -> int | None:
    if available_gib is None or available_gib >= needed:
        return None
    return longest_context(checkpoint.kv_cache, available_gib)


def _verdict(available_gib: float | None, at_most_gib: float, needed: float, *, weights_fit: bool) -> Verdict:
    """`at_most_gib` is what the weights alone leave: where that is too little, nothing else need be known."""
    if not weights_fit:
        return "refused"
    if available_gib is None:
        return "refused" if at_most_gib < needed else "unknown"
    if available_gib < needed:
        return "refused"
    return "short" if available_gib - needed < SPARE_GIB else "fits"
