"""Checks that compare the memory of a release with this GPU and this host."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.core.values import Missing
from gb300serve.fit.hardware import is_close_to_abort
from gb300serve.fit.result import FitResult, host_sentence
from gb300serve.preflight.subject import PreflightSubject, check


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
    hint = subject.release.fit if subject.release else None
    if not result.plan.weights_fit:
        message = f"{result.plan.hbm.weights_gib:.1f} GiB of weights stay on a GPU with {result.gpu.total_gib:.1f} GiB"
        yield Finding(("fit",), message, hint)
    elif result.plan.verdict in ("refused", "short"):
        left = result.plan.hbm.kv_cache_gib
        kept = "less" if left is None else f"{left:.2f} GiB"
        message = (
            f"{result.plan.verdict}: one request of {result.plan.max_model_len:,} tokens needs "
            f"{result.plan.needed_gib:.2f} GiB of KV cache, but {kept} is left ({result.plan.basis})"
        )
        yield Finding(("fit",), message, hint)


@check("PRE031", "error")
def host_memory_too_small(subject: PreflightSubject) -> Iterator[Finding]:
    """The available host memory does not hold the pinned weights, or barely does.

    Why: The kernel kills the engine without a line in its log, and may kill other programs first.
    Fix: Stop programs that hold memory, lower `cpu_offload_gb`, or drop the page cache (needs root, never done for
    you).
    """
    result = _fit_result(subject)
    if result is None or isinstance(subject.host.memory, Missing):
        return
    hint = "stop what holds memory (ps aux --sort -rss | head), reboot the host, or lower engine.options.cpu_offload_gb"
    verdict = result.host_verdict
    if verdict in ("refused", "short"):
        yield Finding(("memory",), f"{verdict}: {host_sentence(result)}", hint)
    elif is_close_to_abort(result.plan.host, result.grace):
        yield Finding(("memory",), host_sentence(result), hint, severity="warning")


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
