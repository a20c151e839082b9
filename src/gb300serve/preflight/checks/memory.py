"""Memory: what the release needs, against what this GPU and this host have."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.core.text import GIB
from gb300serve.fit.model import FREE_GIB, GB300, HbmPlan
from gb300serve.fit.result import FitResult
from gb300serve.host.missing import Missing
from gb300serve.host.nvidia import GpuState
from gb300serve.preflight.subject import PreflightSubject, check

# nvidia-smi counts whole MiB; another product differs by tens of GiB.
_SAME_GIB = 0.5


def _answer(subject: PreflightSubject) -> FitResult | None:
    return subject.release.memory if subject.release else None


@check("PRE030", "error")
def gpu_memory_too_small(subject: PreflightSubject) -> Iterator[Finding]:
    """What the release leaves for the KV cache does not hold one request of the full length, or barely.

    Why: the engine finds out after the whole load; `short` boots today and fails on another day.
    Fix: `gb300serve fit REF` names the nearest settings that fit.
    """
    found = _answer(subject)
    if found is None or not subject.wants_gpu:
        return
    other = next((gpu for gpu in subject.computing if not _is_gb300(gpu)), None)
    hint = subject.release.fit if subject.release else None
    if other is not None:
        yield from (Finding(("fit",), message, hint) for message in _elsewhere(found, other))
    elif found.plan.verdict in ("refused", "short"):
        left = found.plan.hbm.kv_cache_gib
        kept = "less" if left is None else f"{left:.2f} GiB"
        message = (
            f"{found.plan.verdict}: one request of {found.plan.max_model_len:,} tokens needs "
            f"{found.plan.needed_gib:.2f} GiB of KV cache, and {kept} is left ({found.plan.basis})"
        )
        yield Finding(("fit",), message, hint)


def _is_gb300(gpu: GpuState) -> bool:
    return gpu.cuda_memory is None or abs(gpu.cuda_memory / GIB - GB300.total_gib) < _SAME_GIB


def _elsewhere(found: FitResult, gpu: GpuState) -> Iterator[str]:
    """On another GPU the same weights and overhead are taken from another total."""
    hbm, total = found.plan.hbm, (gpu.cuda_memory or 0) / GIB
    left = _left(hbm, total)
    if hbm.weights_gib > total:
        yield f"{hbm.weights_gib:.1f} GiB of weights stay on the GPU, and {gpu.name} has {total:.1f} GiB"
    elif left is not None and left < found.plan.needed_gib:
        yield (
            f"on {gpu.name} with {total:.1f} GiB {left:.1f} GiB are left for the KV cache, and one request of "
            f"{found.plan.max_model_len:,} tokens needs {found.plan.needed_gib:.2f}"
        )


def _left(hbm: HbmPlan, total_gib: float) -> float | None:
    if hbm.overhead_gib is None:
        return None
    return hbm.usable_gib / GB300.total_gib * total_gib - hbm.weights_gib - hbm.overhead_gib


@check("PRE031", "error")
def host_memory_too_small(subject: PreflightSubject) -> Iterator[Finding]:
    """The host's available memory does not hold what is to be pinned, or barely.

    Why: the kernel kills the engine without a line in its log, and may take other programs first.
    Fix: stop what holds memory, lower `cpu_offload_gb`, or drop the page cache (needs root, never done for you).
    """
    found = _answer(subject)
    if found is None or isinstance(subject.host.memory, Missing) or found.host_verdict not in ("refused", "short"):
        return
    host, grace = found.plan.host, found.grace
    message = (
        f"{found.host_verdict}: {host.resident_gib:.0f} to {host.resident_bound_gib:.0f} GiB are to be held, "
        f"{grace.available_gib:.0f} GiB are available ({grace.basis}) and {FREE_GIB:g} should stay free"
    )
    hint = "stop what holds memory (ps aux --sort -rss | head), or lower engine.options.cpu_offload_gb"
    yield Finding(("memory",), message, hint)


@check("PRE032", "note")
def memory_not_computed(subject: PreflightSubject) -> Iterator[Finding]:
    """Whether the release fits the memory is not known.

    Why: no boot of this model was measured, or its sizes are not known here.
    Fix: `gb300serve fit REF` says what is missing; `--calibrate boot.log` learns from a boot.
    """
    if subject.release is None or not subject.wants_gpu:
        return
    found = _answer(subject)
    if found is None or found.plan.verdict == "unknown":
        hint = f"{subject.release.fit} says why"
        yield Finding(("fit",), "not checked: whether it fits the GPU's memory", hint)
