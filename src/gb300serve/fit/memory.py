"""The memory plan of one launch: does it boot, and how much KV cache is left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from gb300serve.fit.checkpoint import GIB, Basis, Checkpoint, Constant, KvCache, MeasuredBoot, Residency
from gb300serve.fit.hardware import (
    CONTEXT_GIB,
    GB300,
    Hbm,
    HbmPlan,
    HostPlan,
    Verdict,
    hook_of,
    host_plan,
    is_same_total,
    residency_of,
)
from gb300serve.fit.request import MemoryRequest, OffloadResult, offload, request_from_options, with_environment


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
    hook_starts: bool
    """False: the hook aborts before its first layer, because too little HBM is free."""
    kv_limit_gib: float | None
    """The largest KV cache that the GPU can hold; a fixed size above it does not boot."""
    basis: Basis
    boots: tuple[str, ...]
    """Names of the measured boots that the plan is based on."""
    constant: Constant | None = None
    """F, if the KV cache was computed from it."""
    graphs: Constant | None = None
    """CUDA graphs, in GiB."""
    residency: Residency | None = None
    """Set by a hook; it then replaces the offload in the KV cache."""


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
    """A boot, its memory request, the GiB of its weights (without host tables), and its F.

    `moved_gib` is what lies in Grace after loading: the offload, or the residency that a hook sets.
    """

    boot: MeasuredBoot
    request: MemoryRequest
    shape: tuple[object, ...]
    weights_gib: float
    offloaded_gib: float
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
        "draft_lengths_between": speculation.lengths_between if speculation else (),
        "adaptive_verification": speculation is not None and speculation.adaptive,
        "max_num_seqs": request.max_num_seqs,
        "engine_version": request.engine_version,
        "kv_cache_dtype": request.kv_cache_dtype,
        "enforce_eager": request.enforce_eager,
        "max_num_batched_tokens": request.max_num_batched_tokens,
        "host_tables": request.host_tables,
        "capture_sizes": request.capture_sizes,
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
        if available is None or not is_same_total(boot.total_gib or GB300.total_gib, total_gib):
            continue
        request = request_of_boot(boot)
        computed = _moved(checkpoint, request).moved_gib
        logged = float(boot.figures.get("offloaded_gib", computed))  # with two decimals
        offloaded = computed if abs(computed - logged) < PRINTED_GIB else logged
        hook = hook_of(checkpoint, request)
        moved = float(boot.figures.get("grace_expert_gib", hook.residency.grace_expert_gib if hook else offloaded))
        constant = request.gpu_memory_utilization * total_gib + moved - available
        weights = weights_gib(checkpoint, request)
        measured.append(MeasuredOverhead(boot, request, _shape(request), weights, offloaded, moved, constant))
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
            and abs(boot.offloaded_gib - moved_gib) < 0.005
            and not boot.boot.assumed
        )

    return next(filter(is_same, boots), None)


# Boots of one shape differ by 0.02 GiB; a larger spread has a cause that the model does not know.
EXPLAINED_SPREAD_GIB = 0.05


def _mean(boots: Sequence[MeasuredOverhead], basis: Basis) -> Constant:
    """Their mean; `assumed` if they contradict each other."""
    constants = [boot.constant for boot in boots]
    spread = max(constants) - min(constants)
    names = tuple(boot.boot.name for boot in boots)
    return Constant(
        sum(constants) / len(constants), "assumed" if spread > EXPLAINED_SPREAD_GIB else basis, names, spread
    )


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


def graphs_of(checkpoint: Checkpoint, request: MemoryRequest) -> Constant | None:
    """GiB of CUDA graphs: stated, else measured with these capture sizes, else estimated; None if nothing is known."""
    if request.enforce_eager:
        return Constant(0.0, "computed", ("enforce_eager",))
    if checkpoint.graphs_gib is not None:
        return checkpoint.graphs_gib
    measured, adaptive, sizes = _measured_graphs(checkpoint), request.is_adaptive, request.capture_sizes
    alike = [m for m in measured if m[0].is_adaptive == adaptive and (adaptive or m[0].capture_sizes == sizes)]
    same = [m for m in alike if adaptive or sizes or m[0].max_num_seqs == request.max_num_seqs]
    if same:
        return _mean_graphs(same, request)
    if sizes and checkpoint.graphs_per_size_gib:
        names = (f"{checkpoint.graphs_per_size_gib:g} GiB for each of {len(sizes)} sizes",)
        return Constant(len(sizes) * checkpoint.graphs_per_size_gib, "assumed", names)
    return None if sizes else _interpolated_graphs(alike, request.max_num_seqs)


@lru_cache(maxsize=8)
def _measured_graphs(checkpoint: Checkpoint) -> tuple[tuple[MemoryRequest, float, str], ...]:
    return tuple(
        (request_of_boot(boot), float(graphs), boot.name)
        for boot in checkpoint.boots
        if (graphs := boot.figures.get("graphs_gib")) is not None
    )


def _mean_graphs(measured: Sequence[tuple[MemoryRequest, float, str]], request: MemoryRequest) -> Constant:
    is_same = any(m[0].max_num_seqs == request.max_num_seqs for m in measured)
    mean = sum(gib for _, gib, _ in measured) / len(measured)
    return Constant(mean, "computed" if is_same else "assumed", tuple(name for _, _, name in measured))


def _interpolated_graphs(measured: Sequence[tuple[MemoryRequest, float, str]], slots: int | None) -> Constant | None:
    """On the line through the two nearest numbers of slots."""
    by_slots: dict[int, list[float]] = {}
    for request, gib, _ in measured:
        by_slots.setdefault(request.max_num_seqs or 0, []).append(gib)
    nearest = sorted(sorted(by_slots, key=lambda count: abs(count - (slots or 0)))[:2])
    if len(nearest) < 2 or slots is None:
        return None
    (low, first), (high, last) = ((count, sum(by_slots[count]) / len(by_slots[count])) for count in nearest)
    gib = max(0.0, first + (last - first) * (slots - low) / (high - low))
    return Constant(gib, "assumed", (f"between {low} and {high} slots",))


def _extrapolated(checkpoint: Checkpoint, request: MemoryRequest, boots: Sequence[MeasuredOverhead]) -> Constant:
    """F of the nearest boots, adapted to another context length, other weights, graphs and draft tokens.

    The slope is that of the nearest boots, else of any shape. F is at least the weights, less the part that some boot
    did not load (the drafter, without speculation).
    """
    shape, length, weights = _shape(request), request.max_model_len or 0, weights_gib(checkpoint, request)
    near = [boot for boot in boots if boot.shape == shape] or _nearest(boots, request)
    shapes = {boot.shape for boot in boots}
    families = [near, *([boot for boot in boots if boot.shape == shape] for shape in sorted(shapes, key=str))]
    slope = next(filter(None, map(_slope, families)), 0.0)
    extrapolated = [
        boot.constant
        + slope * (length - (boot.request.max_model_len or 0))
        + weights
        - boot.weights_gib
        + _other_graphs(checkpoint, request, boot)
        + _other_drafts(checkpoint, request, boot)
        for boot in near
    ]
    average = sum(extrapolated) / len(extrapolated)
    least = weights + min(0.0, *(boot.constant - boot.weights_gib for boot in boots))
    adjustment = _adjustment(checkpoint, request, near[0])
    return Constant(max(average, least), "assumed", tuple(boot.boot.name for boot in near), adjustment=adjustment)


def _other_graphs(checkpoint: Checkpoint, request: MemoryRequest, boot: MeasuredOverhead) -> float:
    """The difference that the graphs make to F; 0 if one of them is unknown."""
    before, after = _graphs_of_boot(checkpoint, boot), graphs_of(checkpoint, request)
    if before is None or after is None:
        return 0.0
    hook = hook_of(checkpoint, request)
    return (hook.graphs_slope if hook else 1.0) * (after.gib - before)


def _graphs_of_boot(checkpoint: Checkpoint, boot: MeasuredOverhead) -> float | None:
    own = boot.boot.figures.get("graphs_gib")
    if own is not None:
        return float(own)
    known = graphs_of(checkpoint, boot.request)
    return known.gib if known else None


def _other_drafts(checkpoint: Checkpoint, request: MemoryRequest, boot: MeasuredOverhead) -> float:
    """The difference that the drafted tokens make to F, if both draft."""
    before, after = boot.request.speculation, request.speculation
    if before is None or after is None or not before.tokens or not after.tokens:
        return 0.0
    return checkpoint.draft_step_gib * (after.tokens - before.tokens)


def _adjustment(checkpoint: Checkpoint, request: MemoryRequest, boot: MeasuredOverhead) -> str:
    parts = []
    before, after = _graphs_of_boot(checkpoint, boot), graphs_of(checkpoint, request)
    if before is not None and after is not None and abs(after.gib - before) >= PRINTED_GIB:
        parts.append(f"CUDA graphs {after.gib:.2f} GiB ({', '.join(after.boots)}) instead of {before:.2f}")
    if steps := _other_drafts(checkpoint, request, boot):
        parts.append(f"{steps:+.2f} GiB for the drafted tokens")
    return "; ".join(parts)


def _nearest(boots: Sequence[MeasuredOverhead], request: MemoryRequest) -> list[MeasuredOverhead]:
    """With the same patch if possible, the boots with most settings in common; of those, the nearest in slots."""
    shape, slots = _shape(request), request.max_num_seqs or 0

    def distance(boot: MeasuredOverhead) -> tuple[bool, int, int]:
        common = sum(measured == wanted for measured, wanted in zip(boot.shape, shape, strict=True))
        return boot.request.variant != request.variant, -common, abs((boot.request.max_num_seqs or 0) - slots)

    best = min(map(distance, boots))
    return [boot for boot in boots if distance(boot) == best]


def constant_for(checkpoint: Checkpoint, request: MemoryRequest, total_gib: float) -> Constant | None:
    """F for a request on a GPU of `total_gib`; None if no boot was measured on such a GPU."""
    boots = measured_boots(checkpoint, total_gib)
    if not boots:
        return None
    shape, length = _shape(request), request.max_model_len or 0
    exact = [boot for boot in boots if boot.shape == shape and boot.request.max_model_len == length]
    exact = [boot for boot in exact if boot.boot.learned] or exact
    if exact:
        return _mean(exact, "computed" if any(not boot.boot.assumed for boot in exact) else "assumed")
    return _extrapolated(checkpoint, request, boots)


# Boots with equal settings differ by 0.02 GiB, and a patch cost 0.13 GiB: with less to spare, a later boot may fail.
SPARE_GIB = 0.15
AUTO_LENGTH = -1


@dataclass(frozen=True, slots=True)
class _Cache:
    """The KV cache in GiB, its tokens if a boot reported them, and the basis of the GiB."""

    gib: float | None
    tokens: int | None
    basis: Basis
    boots: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    """What the boot with exactly this request logged."""
    is_contradicted: bool = False
    """Boots of this shape disagree."""


def memory_plan(
    checkpoint: Checkpoint, request: MemoryRequest, hbm: Hbm = GB300, *, look_up: bool = True
) -> MemoryPlan:
    """The plan of a launch; `max_model_len` -1 shortens the context until it fits.

    `look_up`: use the figures of a boot with the same request, if there is one. Otherwise everything is computed.
    """
    moved, residency = _moved(checkpoint, request), residency_of(checkpoint, request)
    length = request.max_model_len
    if length is None or length == AUTO_LENGTH:
        length = checkpoint.max_position_embeddings
    stated = replace(request, max_model_len=length)
    in_grace = residency.grace_expert_gib if residency else moved.moved_gib
    constant = _constant(checkpoint, stated, hbm)
    computed = _computed_cache(constant, stated, in_grace, hbm)
    cache = (_measured_cache(checkpoint, stated, moved, hbm, computed) if look_up else None) or computed
    needed, longest = needed_gib(checkpoint.kv_cache, length), None
    if cache.gib is not None and cache.gib < needed:
        longest = longest_context(checkpoint.kv_cache, cache.gib)
    if request.max_model_len == AUTO_LENGTH and longest is not None:
        length, needed = longest, needed_gib(checkpoint.kv_cache, longest)
        longest = None
    gpu = _hbm(checkpoint, request, in_grace, cache.gib, hbm)
    fits = weights_gib(checkpoint, request) - min(in_grace, moved.moved_gib) < hbm.total_gib
    starts = _hook_starts(checkpoint, request, moved)
    limit = None if constant is None else hbm.total_gib - CONTEXT_GIB + in_grace - constant.gib
    tokens, concurrency = _pool(checkpoint, cache, length)
    verdict = _verdict(cache.gib, gpu.usable_gib - gpu.weights_gib, needed, boots=fits and starts)
    if request.kv_cache_memory_bytes is not None and limit is not None and request.kv_cache_memory_bytes > limit * GIB:
        verdict = "refused"
    return MemoryPlan(
        verdict=verdict,
        hbm=gpu,
        host=_with_measured(host_plan(checkpoint, request, moved), cache.figures),
        offload=moved,
        max_model_len=length,
        needed_gib=needed,
        kv_cache_tokens=tokens,
        concurrency_at_max_len=concurrency,
        estimated_max_model_len=longest,
        weights_fit=fits,
        hook_starts=starts,
        kv_limit_gib=limit,
        basis=cache.basis,
        boots=cache.boots,
        constant=constant,
        graphs=graphs_of(checkpoint, stated),
        residency=residency,
    )


def _moved(checkpoint: Checkpoint, request: MemoryRequest) -> OffloadResult:
    return _offload(checkpoint, request.cpu_offload_gb if request.offloads else 0.0, request.cpu_offload_params)


# It visits every parameter, and a lint of many recipes needs the same few offloads again and again.
@lru_cache(maxsize=256)
def _offload(checkpoint: Checkpoint, requested_gib: float, patterns: tuple[str, ...]) -> OffloadResult:
    return offload(checkpoint.parameters, requested_gib, patterns)


def _hook_starts(checkpoint: Checkpoint, request: MemoryRequest, moved: OffloadResult) -> bool:
    hook = hook_of(checkpoint, request)
    return hook is None or moved.moved_gib - hook.limits.hbm_used_gib >= hook.limits.hbm_floor_gib


def _with_measured(host: HostPlan, figures: Mapping[str, Any]) -> HostPlan:
    left = figures.get("host_left_gib", host.measured_left_gib)
    return replace(host, measured_shared_gb=figures.get("host_shared_gb"), measured_left_gib=left)


def _measured_cache(
    checkpoint: Checkpoint, request: MemoryRequest, moved: OffloadResult, hbm: Hbm, computed: _Cache
) -> _Cache | None:
    """The figures of a boot with the same request. If it logged tokens only, its GiB are those computed."""
    if request.kv_cache_memory_bytes is not None or checkpoint.residency is not None:
        return None
    same = find_same_boot(measured_boots(checkpoint, hbm.total_gib), request, moved.moved_gib)
    if same is not None and computed.is_contradicted:
        return None
    if same is not None:
        figures = same.boot.figures
        return _Cache(figures["kv_cache_gib"], figures.get("kv_cache_tokens"), "measured", (same.boot.name,), figures)
    counted = _counted_boot(checkpoint, request, hbm)
    if counted is None or computed.gib is None:
        return None
    return replace(computed, tokens=counted.figures["kv_cache_tokens"], figures=counted.figures)


def _counted_boot(checkpoint: Checkpoint, request: MemoryRequest, hbm: Hbm) -> MeasuredBoot | None:
    """A boot with exactly this request that logged the tokens of its KV cache, but not the GiB."""
    counted = (
        boot
        for boot in checkpoint.boots
        if boot.figures.get("kv_cache_gib") is None
        and boot.figures.get("kv_cache_tokens")
        and not boot.assumed
        and is_same_total(boot.total_gib or GB300.total_gib, hbm.total_gib)
    )
    return next((boot for boot in counted if request_of_boot(boot) == request), None)


def _computed_cache(constant: Constant | None, request: MemoryRequest, in_grace: float, hbm: Hbm) -> _Cache:
    if request.kv_cache_memory_bytes is not None:
        return _Cache(request.kv_cache_memory_bytes / GIB, None, "computed")
    if constant is None:
        return _Cache(None, None, "assumed")
    left = request.gpu_memory_utilization * hbm.total_gib + in_grace - constant.gib
    contradicted = constant.spread_gib > EXPLAINED_SPREAD_GIB
    return _Cache(left, None, constant.basis, constant.boots, is_contradicted=contradicted)


def _constant(checkpoint: Checkpoint, request: MemoryRequest, hbm: Hbm) -> Constant | None:
    """F as stated for this launch, else from boots of its shape, else from the nearest boots."""
    stated = checkpoint.overhead
    if stated is not None and stated.basis == "computed":
        return stated
    measured = constant_for(checkpoint, request, hbm.total_gib)
    return measured if stated is None or (measured is not None and measured.basis == "computed") else stated


def _hbm(checkpoint: Checkpoint, request: MemoryRequest, in_grace: float, cache_gib: float | None, hbm: Hbm) -> HbmPlan:
    usable = request.gpu_memory_utilization * hbm.total_gib
    weights = weights_gib(checkpoint, request) - in_grace
    overhead = None if cache_gib is None else usable - weights - cache_gib
    return HbmPlan(hbm.visible_gib, hbm.total_gib, usable, weights, overhead, cache_gib)


def _pool(checkpoint: Checkpoint, cache: _Cache, length: int) -> tuple[int | None, float | None]:
    if cache.gib is None or cache.gib <= 0:
        return None, None
    tokens = cache.tokens or tokens_in(checkpoint.kv_cache, cache.gib, length)
    return tokens, tokens / length if length else None


def _verdict(available_gib: float | None, at_most_gib: float, needed: float, *, boots: bool) -> Verdict:
    """`at_most_gib` is what the weights alone leave: if that is too little, the overhead does not matter."""
    if not boots:
        return "refused"
    if available_gib is None:
        return "refused" if at_most_gib < needed else "unknown"
    return "refused" if available_gib < needed else "short" if available_gib - needed < SPARE_GIB else "fits"
