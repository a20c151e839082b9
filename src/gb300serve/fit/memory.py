"""The memory plan of one launch: does it boot, and how much KV cache is left."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from gb300serve.fit.checkpoint import GIB, Basis, Checkpoint, Constant, KvCache, MeasuredBoot
from gb300serve.fit.request import (
    MemoryRequest,
    OffloadResult,
    offload,
    request_from_options,
    rounded_up,
    with_environment,
)

Verdict = Literal["fits", "short", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class Hbm:
    """The GPU's memory: the size that nvidia-smi shows, and the total that CUDA reports and utilization multiplies."""

    visible_gib: float
    total_gib: float


# nvidia-smi shows 256,703 MiB, CUDA reports 268,235,309,056 bytes. The 288 GB of the data sheet are not used.
GB300 = Hbm(visible_gib=256_703 / 1024, total_gib=268_235_309_056 / GIB)


@dataclass(frozen=True, slots=True)
class HbmPlan:
    """The GPU side. `usable_gib` is what utilization allows; None means that no comparable boot was measured."""

    visible_gib: float
    usable_gib: float
    weights_gib: float
    overhead_gib: float | None
    kv_cache_gib: float | None


@dataclass(frozen=True, slots=True)
class HostPlan:
    """The host side: requested and actual offload, the tables (Engram), and the sum of actual offload and tables.

    `resident_bound_gib` is that sum if every pinned tensor is rounded up to a power of two.
    """

    requested_gib: float
    offloaded_gib: float
    engram_gib: float
    resident_gib: float
    resident_bound_gib: float
    available_gib: float | None = None
    measured_shared_gb: float | None = None
    """Shared memory (GB) of a boot with exactly this request, as its operators' tools printed it."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The plan of one launch. Figures are None if no comparable boot was measured."""

    verdict: Verdict
    hbm: HbmPlan
    host: HostPlan
    offload: OffloadResult
    max_model_len: int
    needed_gib: float
    """KV cache that one request of `max_model_len` tokens needs."""
    kv_cache_tokens: int | None
    concurrency_at_max_len: float | None
    estimated_max_model_len: int | None
    """The longest context that fits, if `max_model_len` does not."""
    weights_fit: bool
    """False: the engine runs out of memory while it creates its weights."""
    basis: Basis
    boots: tuple[str, ...]
    """Names of the measured boots that the plan is based on."""


# Operators of Stations keep at least 20 GiB free.
FREE_GIB = 20.0
# All experts and Engram are 442 GiB. That boot was killed when it held 486 GB (453 GiB) of shared memory.
NEVER_HELD_GIB = 440.0


@dataclass(frozen=True, slots=True)
class GraceMemory:
    """MemAvailable of the host (Grace) in GiB, measured or assumed, and the basis of the figure."""

    available_gib: float
    basis: str


STATION = GraceMemory(494.5, "assumed: all of a Station's Grace memory, nothing else running")


def host_verdict(host: HostPlan, grace: GraceMemory = STATION) -> Verdict:
    """`short` if rounded-up allocations would leave less than FREE_GIB."""
    if host.resident_gib > min(grace.available_gib, NEVER_HELD_GIB):
        return "refused"
    return "short" if host.resident_bound_gib > grace.available_gib - FREE_GIB else "fits"


def needed_gib(cache: KvCache, tokens: int) -> float:
    """KV cache that one request of `tokens` tokens needs."""
    return cache.fixed_gib + cache.bytes_per_token * tokens / GIB


def tokens_in(cache: KvCache, available_gib: float, max_model_len: int) -> int:
    """The size of the pool as the engine reports it: concurrent requests of `max_model_len`, times that length."""
    return int(available_gib / needed_gib(cache, max_model_len) * max_model_len)


def longest_context(cache: KvCache, available_gib: float) -> int | None:
    """The longest request that fits, in whole blocks; None if not even one block fits."""
    blocks = int((available_gib - cache.fixed_gib) * GIB / cache.bytes_per_token) // cache.block_tokens
    return blocks * cache.block_tokens if blocks > 0 else None


@dataclass(frozen=True, slots=True)
class MeasuredOverhead:
    """A boot, its memory request, the GiB of its weights (without host tables), the GiB that it moved, and its F."""

    boot: MeasuredBoot
    request: MemoryRequest
    shape: tuple[object, ...]
    weights_gib: float
    moved_gib: float
    constant: float


# Logs print GiB with two decimals.
PRINTED_GIB = 0.01


def _settings(request: MemoryRequest) -> dict[str, object]:
    """The settings that F depends on, the most expensive error first. F is linear in the length, which is apart."""
    speculation = request.speculation
    return {
        "patch": request.variant,
        "speculation": speculation.method if speculation else None,
        "draft_tokens": speculation.tokens if speculation else None,
        "max_num_seqs": request.max_num_seqs,
        "engine_version": request.engine_version,
        "kv_cache_dtype": request.kv_cache_dtype,
        "enforce_eager": request.enforce_eager,
        "max_num_batched_tokens": request.max_num_batched_tokens,
        "host_tables": request.host_tables,
        "other_options": request.others,
    }


def shape_of(request: MemoryRequest) -> dict[str, object]:
    """The settings that F depends on, by name, with the length."""
    return _settings(request) | {"max_model_len": request.max_model_len}


def _shape(request: MemoryRequest) -> tuple[object, ...]:
    return tuple(_settings(request).values())


# 5 ms for a dozen boots, and lint needs it once per file.
@lru_cache(maxsize=8)
def measured_boots(checkpoint: Checkpoint, total_gib: float) -> tuple[MeasuredOverhead, ...]:
    """The boots of a checkpoint whose KV cache was measured, on a GPU of `total_gib`.

    Their offload is computed, or the log's figure if that differs.
    """
    measured = []
    for boot in checkpoint.boots:
        available = boot.figures.get("kv_cache_gib")
        if available is None:
            continue
        request = request_of_boot(boot)
        computed = offload(checkpoint.parameters, request.cpu_offload_gb, request.cpu_offload_params).moved_gib
        logged = float(boot.figures.get("offloaded_gib", computed))  # with two decimals
        moved = computed if abs(computed - logged) < PRINTED_GIB else logged
        constant = request.gpu_memory_utilization * total_gib + moved - available
        weights = weights_gib(checkpoint, request)
        measured.append(MeasuredOverhead(boot, request, _shape(request), weights, moved, constant))
    return tuple(measured)


def weights_gib(checkpoint: Checkpoint, request: MemoryRequest) -> float:
    """The weights on the GPU before any offload: the whole checkpoint, without the tables if the host has them."""
    return (checkpoint.weights_bytes if request.host_tables else checkpoint.bytes) / GIB


def request_of_boot(boot: MeasuredBoot) -> MemoryRequest:
    """The memory request of a measured boot."""
    return with_environment(request_from_options(boot.settings, boot.engine_version, boot.variant), boot.environment)


def find_same_boot(
    boots: Sequence[MeasuredOverhead], request: MemoryRequest, moved_gib: float
) -> MeasuredOverhead | None:
    """The boot with the same shape, length, schedule, utilization and offload, if there is one."""
    shape = _shape(request)

    def is_same(boot: MeasuredOverhead) -> bool:
        measured, wanted = boot.request.speculation, request.speculation
        return (
            boot.shape == shape
            and boot.request.max_model_len == request.max_model_len
            and boot.request.gpu_memory_utilization == request.gpu_memory_utilization
            and (measured.schedule if measured else ()) == (wanted.schedule if wanted else ())
            and abs(boot.moved_gib - moved_gib) < 0.005
            and not boot.boot.assumed
        )

    return next(filter(is_same, boots), None)


def _mean(boots: Sequence[MeasuredOverhead], basis: Basis) -> Constant:
    return Constant(sum(boot.constant for boot in boots) / len(boots), basis, tuple(boot.boot.name for boot in boots))


def _slope(boots: Sequence[MeasuredOverhead]) -> float:
    """GiB of F per token of context, between the shortest and the longest measured; 0 with one length."""
    lengths = sorted({boot.request.max_model_len or 0 for boot in boots})
    if len(lengths) < 2:
        return 0.0
    low, high = (
        _mean([boot for boot in boots if boot.request.max_model_len == length], "assumed")
        for length in (lengths[0], lengths[-1])
    )
    return (high.gib - low.gib) / (lengths[-1] - lengths[0])


def _extrapolated(
    near: Sequence[MeasuredOverhead], boots: Sequence[MeasuredOverhead], length: int, weights: float
) -> Constant:
    """F of the nearest boots, extrapolated to another context length and other weights.

    The slope is that of the nearest boots, else of any shape. F is at least the weights, less the part that some boot
    did not load (the drafter, without speculation).
    """
    shapes = {boot.shape for boot in boots}
    families = [near, *([boot for boot in boots if boot.shape == shape] for shape in sorted(shapes, key=str))]
    slope = next(filter(None, map(_slope, families)), 0.0)
    extrapolated = [
        boot.constant + slope * (length - (boot.request.max_model_len or 0)) + weights - boot.weights_gib
        for boot in near
    ]
    average = sum(extrapolated) / len(extrapolated)
    least = weights + min(0.0, *(boot.constant - boot.weights_gib for boot in boots))
    return Constant(max(average, least), "assumed", tuple(boot.boot.name for boot in near))


def _nearest(boots: Sequence[MeasuredOverhead], request: MemoryRequest) -> list[MeasuredOverhead]:
    shape = _shape(request)

    def similarity(boot: MeasuredOverhead) -> int:
        return sum(measured == wanted for measured, wanted in zip(boot.shape, shape, strict=True))

    best = max(map(similarity, boots))
    return [boot for boot in boots if similarity(boot) == best]


def constant_for(boots: Sequence[MeasuredOverhead], request: MemoryRequest, weights: float) -> Constant | None:
    """F for a request with a context length and `weights` GiB of weights; None if no boot was measured."""
    if not boots:
        return None
    length = request.max_model_len or 0
    shape = _shape(request)
    same_shape = [boot for boot in boots if boot.shape == shape]
    exact = [boot for boot in same_shape if boot.request.max_model_len == length]
    exact = [boot for boot in exact if boot.boot.learned] or exact
    if exact:
        return _mean(exact, "computed" if any(not boot.boot.assumed for boot in exact) else "assumed")
    return _extrapolated(same_shape or _nearest(boots, request), boots, length, weights)


# Boots with equal settings differ by 0.02 GiB, and a patch cost 0.13 GiB: with less to spare, a later boot may fail.
SPARE_GIB = 0.15
AUTO_LENGTH = -1


@dataclass(frozen=True, slots=True)
class _Cache:
    """The KV cache in GiB, its tokens if a boot reported them, and the basis of both."""

    gib: float | None
    tokens: int | None
    basis: Basis
    boots: tuple[str, ...] = ()
    shared_gb: float | None = None


def memory_plan(
    checkpoint: Checkpoint,
    request: MemoryRequest,
    hbm: Hbm = GB300,
    host_available_gib: float | None = None,
    *,
    look_up: bool = True,
) -> MemoryPlan:
    """The plan of a launch; `max_model_len` -1 shortens the context until it fits.

    `look_up`: use the figures of a boot with the same request, if there is one. Otherwise everything is computed.
    """
    moved = _moved(checkpoint, request.cpu_offload_gb if request.offloads else 0.0, request.cpu_offload_params)
    length = request.max_model_len
    if length is None or length == AUTO_LENGTH:
        length = checkpoint.max_position_embeddings
    stated = replace(request, max_model_len=length)
    measured = _measured_cache(checkpoint, stated, moved, hbm) if look_up else None
    cache = measured or _computed_cache(checkpoint, stated, moved, hbm)
    needed, longest = needed_gib(checkpoint.kv_cache, length), None
    if cache.gib is not None and cache.gib < needed:
        longest = longest_context(checkpoint.kv_cache, cache.gib)
    if request.max_model_len == AUTO_LENGTH and longest is not None:
        length, needed = longest, needed_gib(checkpoint.kv_cache, longest)
        longest = None
    gpu = _hbm(checkpoint, request, moved, cache.gib, hbm)
    fits = gpu.weights_gib < hbm.total_gib
    tokens, concurrency = _pool(checkpoint, cache, length)
    return MemoryPlan(
        verdict=_verdict(cache.gib, gpu.usable_gib - gpu.weights_gib, needed, weights_fit=fits),
        hbm=gpu,
        host=replace(_host(checkpoint, request, moved, host_available_gib), measured_shared_gb=cache.shared_gb),
        offload=moved,
        max_model_len=length,
        needed_gib=needed,
        kv_cache_tokens=tokens,
        concurrency_at_max_len=concurrency,
        estimated_max_model_len=longest,
        weights_fit=fits,
        basis=cache.basis,
        boots=cache.boots,
    )


# It visits every parameter, and a lint of many recipes needs the same few offloads again and again.
@lru_cache(maxsize=256)
def _moved(checkpoint: Checkpoint, requested_gib: float, patterns: tuple[str, ...]) -> OffloadResult:
    return offload(checkpoint.parameters, requested_gib, patterns)


def _measured_cache(checkpoint: Checkpoint, request: MemoryRequest, moved: OffloadResult, hbm: Hbm) -> _Cache | None:
    if request.kv_cache_memory_bytes is not None:
        return None
    same = find_same_boot(measured_boots(checkpoint, hbm.total_gib), request, moved.moved_gib)
    if same is None:
        return None
    figures = same.boot.figures
    tokens, shared = figures.get("kv_cache_tokens"), figures.get("host_shared_gb")
    return _Cache(figures["kv_cache_gib"], tokens, "measured", (same.boot.name,), shared)


def _computed_cache(checkpoint: Checkpoint, request: MemoryRequest, moved: OffloadResult, hbm: Hbm) -> _Cache:
    if request.kv_cache_memory_bytes is not None:
        return _Cache(request.kv_cache_memory_bytes / GIB, None, "computed")
    constant = _constant(checkpoint, request, hbm)
    if constant is None:
        return _Cache(None, None, "assumed")
    left = request.gpu_memory_utilization * hbm.total_gib + moved.moved_gib - constant.gib
    return _Cache(left, None, constant.basis, constant.boots)


def _constant(checkpoint: Checkpoint, request: MemoryRequest, hbm: Hbm) -> Constant | None:
    """F as stated for this launch, else from boots of its shape, else from the nearest boots."""
    stated = checkpoint.overhead
    if stated is not None and stated.basis == "computed":
        return stated
    measured = constant_for(measured_boots(checkpoint, hbm.total_gib), request, weights_gib(checkpoint, request))
    return measured if stated is None or (measured is not None and measured.basis == "computed") else stated


def _hbm(
    checkpoint: Checkpoint, request: MemoryRequest, moved: OffloadResult, cache_gib: float | None, hbm: Hbm
) -> HbmPlan:
    usable = request.gpu_memory_utilization * hbm.total_gib
    weights = weights_gib(checkpoint, request) - moved.moved_gib
    overhead = None if cache_gib is None else usable - weights - cache_gib
    return HbmPlan(hbm.visible_gib, usable, weights, overhead, cache_gib)


def _host(
    checkpoint: Checkpoint, request: MemoryRequest, moved: OffloadResult, available_gib: float | None
) -> HostPlan:
    tables = [table.bytes for table in checkpoint.host_tables] if request.host_tables else []
    rounded = moved.rounded_bytes + sum(map(rounded_up, tables))
    return HostPlan(
        requested_gib=request.cpu_offload_gb,
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


def _verdict(available_gib: float | None, at_most_gib: float, needed: float, *, weights_fit: bool) -> Verdict:
    """`at_most_gib` is what the weights alone leave: if that is too little, the overhead does not matter."""
    if not weights_fit:
        return "refused"
    if available_gib is None:
        return "refused" if at_most_gib < needed else "unknown"
    return "refused" if available_gib < needed else "short" if available_gib - needed < SPARE_GIB else "fits"
