"""Will it boot, and with how much KV cache: the whole arithmetic for one launch."""

from dataclasses import dataclass, replace
from functools import lru_cache

from gb300serve.fit.checkpoint import GIB, Basis, Checkpoint, Constant
from gb300serve.fit.demand import Demand
from gb300serve.fit.kv import longest_context, needed_gib, tokens_in
from gb300serve.fit.model import GB300, Hbm, HbmPlan, HostPlan, MemoryPlan, Verdict
from gb300serve.fit.offload import OffloadResult, offload, rounded_up
from gb300serve.fit.overhead import constant_for, measured_boots, same_boot, weights_gib

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
