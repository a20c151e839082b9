"""Memory: what the arithmetic says of a known checkpoint, before anything is downloaded."""

import re
from collections.abc import Iterator

from gb300serve.core.diagnostics import Severity
from gb300serve.core.rules import Finding
from gb300serve.document.nodes import Path
from gb300serve.engines.base import length, si_length
from gb300serve.engines.vllm.options import VllmOptions
from gb300serve.fit.model import STATION, MemoryPlan, host_verdict
from gb300serve.lint.subject import Fitting, LintSubject, option_given, option_path, rule, vllm_rule

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


# From here on one prompt occupies several seconds of steps that short requests wait for.
_LONG = 262144
_SCALE = {"k": 1000, "m": 1000_000}
_BINARY = {"k": 1024, "m": 1024 * 1024}
_PROMISE = re.compile(r"(?<![\w.,-])(\d+(?:[.,]\d+)?)[ -]?([kKmM])(?:i?[bB]?)?(?![A-Za-z0-9])(?! ?/ ?s)")
_MILLIONS = re.compile(r"\b(half a|a|one|two|three|four|five|ten)[ -]million\b", re.IGNORECASE)
_COUNTS = {"half a": 0.5, "a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}
_PLAIN = re.compile(r"(?<![\w.,-])(\d{5,8}|\d{1,3}(?:[, ]\d{3})+)(?: ?-?tokens?| context)")
# A promise is rounded: 131,072 is told as 128K and as 131K.
_ROUNDED = 0.04
_SHORTEST = 2048


@vllm_rule("LEN001", "error")
def context_above_model(subject: LintSubject) -> Iterator[Finding]:
    """The context is longer than the model's.

    Why: the engine refuses it before any weight (`greater than the derived max_model_len`).
    Fix: write at most the model's length.
    """
    view, known = subject.vllm, subject.checkpoint
    if view is None or known is None or view.max_model_len is None or "hf_overrides" in subject.options:
        return
    allowed = subject.container.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1"
    if view.max_model_len > known.max_position_embeddings and not allowed:
        message = f"max_model_len is {view.max_model_len}, and the model's own context {known.max_position_embeddings}"
        yield Finding(option_path("max_model_len"), message, f"write {known.max_position_embeddings}")


@vllm_rule("LEN002", "warning")
def threshold_without_effect(subject: LintSubject) -> Iterator[Finding]:
    """`long_prefill_token_threshold` is not below `max_num_batched_tokens`.

    Why: a long prompt never gets more than `max_num_batched_tokens` of a step, so the threshold changes nothing: short
    requests wait 18.2 s behind a prompt of 480,000 tokens, where 6,144 of 8,192 made it 1.09 s.
    Fix: write about three quarters of `max_num_batched_tokens`.
    """
    view = subject.vllm
    if view is None or not view.long_prefill_token_threshold or view.max_num_batched_tokens is None:
        return
    if view.long_prefill_token_threshold >= view.max_num_batched_tokens:
        message = (
            f"long_prefill_token_threshold {view.long_prefill_token_threshold} has no effect: "
            f"max_num_batched_tokens is {view.max_num_batched_tokens}"
        )
        yield Finding(
            option_path("long_prefill_token_threshold"), message, f"write {view.max_num_batched_tokens * 3 // 4}"
        )


@vllm_rule("LEN003", "error")
def threshold_above_context(subject: LintSubject) -> Iterator[Finding]:
    """`long_prefill_token_threshold` is above `max_model_len`.

    Why: the engine refuses the pair before any weight.
    Fix: write a threshold below the context.
    """
    view = subject.vllm
    if view is None or view.long_prefill_token_threshold is None or view.max_model_len is None:
        return
    if view.long_prefill_token_threshold > view.max_model_len > 0:
        said = f"long_prefill_token_threshold is {view.long_prefill_token_threshold}"
        message = f"{said}, and max_model_len {view.max_model_len}"
        yield Finding(option_path("long_prefill_token_threshold"), message, "write less than max_model_len")


@vllm_rule("LEN004", "error")
def batch_below_seats(subject: LintSubject) -> Iterator[Finding]:
    """`max_num_batched_tokens` is below `max_num_seqs`.

    Why: each running sequence needs one token of a step; the engine refuses the pair before any weight.
    Fix: raise `max_num_batched_tokens`; 8192 is common.
    """
    view = subject.vllm
    if view is None or view.max_num_seqs is None:
        return
    if view.max_num_batched_tokens is not None and view.max_num_batched_tokens < view.max_num_seqs:
        message = f"max_num_batched_tokens is {view.max_num_batched_tokens}, and max_num_seqs {view.max_num_seqs}"
        yield Finding(option_path("max_num_batched_tokens"), message, "write at least max_num_seqs; 8192 is common")
    active = length(subject.options.get("max_num_active_seqs"))
    if active is not None and active > view.max_num_seqs:
        message = f"max_num_active_seqs is {active}, and max_num_seqs {view.max_num_seqs}"
        yield Finding(option_path("max_num_active_seqs"), message, "write at most max_num_seqs")


@vllm_rule("LEN005", "error")
def batch_below_context(subject: LintSubject) -> Iterator[Finding]:
    """Chunked prefill is off, and a prompt of full length does not fit a step.

    Why: without chunks a prompt is computed in one step; the engine refuses a context above `max_num_batched_tokens`.
    Fix: remove `enable_chunked_prefill: false`.
    """
    view = subject.vllm
    if view is None or subject.options.get("enable_chunked_prefill") is not False:
        return
    batch, context = view.max_num_batched_tokens, view.max_model_len
    if batch is not None and context is not None and batch < context:
        message = f"without chunked prefill max_num_batched_tokens {batch} must hold max_model_len {context}"
        yield Finding(option_path("enable_chunked_prefill"), message, "remove it", of_key=True)


@rule("LEN006", "warning")
def title_promises_other_context(subject: LintSubject) -> Iterator[Finding]:
    """The title promises another context than the engine serves.

    Why: who picks a release by its title sends prompts that are refused, or never uses what is there.
    Fix: correct the title, or `max_model_len`.
    """
    served = _served(subject)
    promised = list(_promises(subject.recipe.title))
    if served is None or served <= 0 or not promised:
        return
    if not any(_close(served, value) for _, values in promised for value in values):
        shown = ", ".join(text for text, _ in promised)
        message = f"the title promises {shown}, and the engine serves {served} tokens"
        yield Finding(("title",), message, "correct the title, or the context length")


def _served(subject: LintSubject) -> int | None:
    if subject.vllm is not None:
        given = subject.vllm.max_model_len
        return given if given is not None or subject.checkpoint is None else subject.checkpoint.max_position_embeddings
    return si_length(subject.options.get("context_length"))


def _promises(title: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Each length that a title tells, as written and as tokens (decimal and binary)."""
    for match in _PROMISE.finditer(title):
        number, unit = float(match[1].replace(",", ".")), match[2].lower()
        if number * _SCALE[unit] >= _SHORTEST:
            yield match[0].strip(), (number * _SCALE[unit], number * _BINARY[unit])
    for match in _MILLIONS.finditer(title):
        number = _COUNTS[match[1].lower()]
        yield match[0], (number * _SCALE["m"], number * _BINARY["m"])
    for match in _PLAIN.finditer(title):
        number = float(match[1].replace(",", "").replace(" ", ""))
        yield match[1], (number,)


def _close(served: int, promised: float) -> bool:
    return abs(served - promised) <= _ROUNDED * promised


@vllm_rule("LEN007", "note")
def no_long_prefill_threshold(subject: LintSubject) -> Iterator[Finding]:
    """Long prompts may take whole steps from short ones.

    Why: behind a prompt of 480,000 tokens short requests waited 18.2 s for their first token; with a threshold of 6144
    0.89 to 1.09 s, and the long prompt took 16 % longer.
    Fix: add `long_prefill_token_threshold: 6144` (below `max_num_batched_tokens`).
    """
    view = subject.vllm
    if view is None or view.long_prefill_token_threshold or view.max_model_len is None or view.max_model_len < _LONG:
        return
    if view.max_num_seqs is None or view.max_num_seqs > 1:
        message = "short requests wait for the whole prefill of a long one: there is no long_prefill_token_threshold"
        yield Finding(option_path("max_model_len"), message, "add `long_prefill_token_threshold: 6144`", of_key=True)
