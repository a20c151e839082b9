"""Memory: what the arithmetic says of a known checkpoint, before anything is downloaded."""

from collections.abc import Iterator

from gb300serve.core.diagnostics import Severity
from gb300serve.core.rules import Finding
from gb300serve.document.nodes import Path
from gb300serve.engines.vllm.view import VllmOptions
from gb300serve.fit.host import STATION, host_verdict
from gb300serve.fit.model import MemoryPlan
from gb300serve.lint.book import vllm_rule
from gb300serve.lint.fitting import Fitting
from gb300serve.lint.subject import LintSubject, option_given, option_path

# 0.97 is the highest share with a boot; the driver and CUDA's own context need what is left of the GPU.
HIGHEST_SHARE = 0.98


def judged(subject: LintSubject) -> Fitting | None:
    """The memory plan, unless a finding about the offload's names already says why nothing moves."""
    fitting, view = subject.fitting, subject.vllm
    if fitting is None or view is None:
        return None
    idle = view.offload.params and (view.offload.gigabytes <= 0 or fitting.plan.offload.unmatched)
    return None if idle else fitting


def deciding_place(subject: LintSubject) -> Path:
    """The setting that decides: what is offloaded, else the share of the GPU, else the context."""
    keys = ("cpu_offload_gb", "gpu_memory_utilization", "max_model_len")
    return next((option_path(key) for key in keys if option_given(subject.options, key)), ("engine", "options"))


def _short_of(view: VllmOptions, plan: MemoryPlan) -> str:
    left = plan.hbm.kv_cache_gib or 0.0
    needed = f"one request of {plan.max_model_len:,} tokens needs {plan.needed_gib:.2f}"
    asked = f"offload {view.offload.gigabytes:g} at {view.gpu_memory_utilization:g}"
    return f"{asked} leaves {left:.2f} GiB of KV cache, and {needed}"


def way_out(plan: MemoryPlan) -> str:
    """What would make it fit."""
    length = plan.estimated_max_model_len
    return "offload more, or raise gpu_memory_utilization" + (f"; max_model_len {length} would fit" if length else "")


@vllm_rule("MEM001", "error")
def kv_cache_does_not_fit(subject: LintSubject) -> Iterator[Finding]:
    """The KV cache left over does not hold one request of the context length.

    Why: the engine finds out after loading 510 GB: six minutes for each try, and more when the weights come from a
    network share.
    Fix: offload more (it moves in steps of whole tensors), raise the utilisation, or shorten the context.
    """
    fitting, view = judged(subject), subject.vllm
    if fitting is None or view is None or fitting.plan.verdict != "refused" or fitting.failed is not None:
        return
    message = f"{_short_of(view, fitting.plan)} ({fitting.plan.basis})"
    severity: Severity | None = "warning" if fitting.plan.basis == "assumed" else None
    yield Finding(deciding_place(subject), message, way_out(fitting.plan), severity=severity)


@vllm_rule("MEM002", "warning")
def kv_cache_short(subject: LintSubject) -> Iterator[Finding]:
    """The KV cache holds one request of the context length with next to nothing to spare.

    Why: two boots of one release differ by 0.02 GiB and a patch cost 0.13: it boots today and not on another day.
    Fix: offload one tensor more, or shorten the context.
    """
    fitting, view = judged(subject), subject.vllm
    if fitting is not None and view is not None and fitting.plan.verdict == "short":
        yield Finding(
            deciding_place(subject), f"{_short_of(view, fitting.plan)} ({fitting.plan.basis})", way_out(fitting.plan)
        )


@vllm_rule("MEM003", "warning")
def host_memory_overcommitted(subject: LintSubject) -> Iterator[Finding]:
    """What is to be pinned in host memory may be more than the host has.

    Why: pinned tensors can be rounded up to a power of two (4.2 GiB holds 8): 305 GiB asked became 504 GiB resident,
    and the kernel killed the engine without a line in its log. All experts and Engram together never booted (486 GB).
    Fix: lower `cpu_offload_gb`.
    """
    fitting, view = judged(subject), subject.vllm
    if fitting is None or view is None or view.offload.gigabytes <= 0:
        return
    host = fitting.plan.host
    verdict = host_verdict(host)
    if verdict == "fits":
        return
    parts = f"{host.offloaded_gib:.1f} GiB of weights and {host.engram_gib:.1f} GiB of tables"
    held = f"{host.resident_gib:.0f} to {host.resident_bound_gib:.0f} GiB of host memory"
    message = f"{parts} hold {held}, which has {STATION.available_gib}"
    severity: Severity | None = "error" if verdict == "refused" else None
    yield Finding(option_path("cpu_offload_gb"), message, "lower cpu_offload_gb", severity=severity)


@vllm_rule("MEM004", "warning")
def utilization_near_all(subject: LintSubject) -> Iterator[Finding]:
    """The engine is given nearly the whole GPU.

    Why: it refuses to start when less than that share is free, and the driver, CUDA's context and whatever runs for a
    moment take some: 0.97 is the highest share that ever booted here.
    Fix: write at most 0.97.
    """
    view = subject.vllm
    if view is not None and HIGHEST_SHARE < view.gpu_memory_utilization <= 1:
        message = f"gpu_memory_utilization {view.gpu_memory_utilization:g} leaves too little for the driver and CUDA"
        yield Finding(option_path("gpu_memory_utilization"), message, "write at most 0.97")
