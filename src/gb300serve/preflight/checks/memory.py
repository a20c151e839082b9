"""Checks that compare the memory of a release with this GPU and this host."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.core.text import GIB
from gb300serve.core.values import Missing
from gb300serve.fit.memory import FREE_GIB, GB300, HbmPlan
from gb300serve.fit.result import FitResult
from gb300serve.host.nvidia import GpuState
from gb300serve.preflight.subject import PreflightSubject, check

# nvidia-smi counts whole MiB; another product differs by tens of GiB.
_SAME_GIB = 0.5


def _fit_result(subject: PreflightSubject) -> FitResult | None:
    return subject.release.memory if subject.release else None


@check("PRE030", "error")
def gpu_memory_too_small(subject: PreflightSubject) -> Iterator[Finding]:
    """The GPU memory left for the KV cache does not hold one request of full length, or barely does.

    Why: The engine detects this after the whole load. A `short` release may boot today and fail tomorrow.
    Fix: Run `fit REF`, which prints the nearest settings that fit.
    """
    result = _fit_result(subject)
    if result is None or not subject.wants_gpu:
        return
    other = next((gpu for gpu in subject.computing if not _is_gb300(gpu)), None)
    hint = subject.release.fit if subject.release else None
    if other is not None:
        yield from (Finding(("fit",), message, hint) for message in _elsewhere(result, other))
    elif result.plan.verdict in ("refused", "short"):
        left = result.plan.hbm.kv_cache_gib
        kept = "less" if left is None else f"{left:.2f} GiB"
        message = (
            f"{result.plan.verdict}: one request of {result.plan.max_model_len:,} tokens needs "
            f"{result.plan.needed_gib:.2f} GiB of KV cache, but {kept} is left ({result.plan.basis})"
        )
        yield Finding(("fit",), message, hint)


def _is_gb300(gpu: GpuState) -> bool:
    return gpu.cuda_memory is None or abs(gpu.cuda_memory / GIB - GB300.total_gib) < _SAME_GIB


def _elsewhere(result: FitResult, gpu: GpuState) -> Iterator[str]:
    """On another GPU the same weights and overhead are taken from another total."""
    hbm, total = result.plan.hbm, (gpu.cuda_memory or 0) / GIB
    left = _left(hbm, total)
    if hbm.weights_gib > total:
        yield f"{hbm.weights_gib:.1f} GiB of weights stay on the GPU, but {gpu.name} has {total:.1f} GiB"
    elif left is not None and left < result.plan.needed_gib:
        yield (
            f"on {gpu.name} with {total:.1f} GiB {left:.1f} GiB are left for the KV cache, but one request of "
            f"{result.plan.max_model_len:,} tokens needs {result.plan.needed_gib:.2f}"
        )


def _left(hbm: HbmPlan, total_gib: float) -> float | None:
    if hbm.overhead_gib is None:
        return None
    return hbm.usable_gib / GB300.total_gib * total_gib - hbm.weights_gib - hbm.overhead_gib


@check("PRE031", "error")
def host_memory_too_small(subject: PreflightSubject) -> Iterator[Finding]:
    """The available host memory does not hold the pinned weights, or barely does.

    Why: The kernel kills the engine without a line in its log, and may kill other programs first.
    Fix: Stop programs that hold memory, lower `cpu_offload_gb`, or drop the page cache (needs root, never done for
    you).
    """
    result = _fit_result(subject)
    if result is None or isinstance(subject.host.memory, Missing) or result.host_verdict not in ("refused", "short"):
        return
    host, grace = result.plan.host, result.grace
    message = (
        f"{result.host_verdict}: {host.resident_gib:.0f} to {host.resident_bound_gib:.0f} GiB needed, "
        f"{grace.available_gib:.0f} GiB available ({grace.basis}); {FREE_GIB:g} GiB should stay free"
    )
    hint = "stop what holds memory (ps aux --sort -rss | head), or lower engine.options.cpu_offload_gb"
    yield Finding(("memory",), message, hint)


@check("PRE032", "note")
def memory_not_computed(subject: PreflightSubject) -> Iterator[Finding]:
    """Whether the release fits into memory is unknown.

    Why: No boot of this model was measured, or its sizes are unknown.
    Fix: Run `fit REF` to see what is missing; `--calibrate boot.log` uses a boot log.
    """
    if subject.release is None or not subject.wants_gpu:
        return
    result = _fit_result(subject)
    if result is None or result.plan.verdict == "unknown":
        hint = f"{subject.release.fit} explains why"
        yield Finding(("fit",), "not checked: whether it fits the GPU's memory", hint)
