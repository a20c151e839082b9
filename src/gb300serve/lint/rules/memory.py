"""Rules for memory and context lengths, computed from known checkpoints."""

import re
from collections.abc import Iterator
from dataclasses import replace

from gb300serve.core.diagnostics import Severity
from gb300serve.core.rules import Finding
from gb300serve.document.nodes import Path
from gb300serve.engines.base import length, number, si_length
from gb300serve.fit.checkpoint import GIB
from gb300serve.fit.hardware import STATION, host_verdict
from gb300serve.fit.memory import MemoryPlan
from gb300serve.lint.subject import Fitting, LintSubject, option_given, option_path, rule, vllm_rule
from gb300serve.plan.model import parse_size

# 0.97 is the highest share that booted; the driver and the CUDA context need the rest.
HIGHEST_SHARE = 0.98


def judged(subject: LintSubject) -> Fitting | None:
    """The memory plan, unless OFF001 or OFF002 already explains why nothing moves."""
    fitting, offload = subject.fitting, subject.vllm.offload
    if fitting is None or (offload.params and (offload.gigabytes <= 0 or fitting.plan.offload.unmatched)):
        return None
    return fitting


def deciding_place(subject: LintSubject) -> Path:
    """The deciding setting: the offload, else the share of the GPU, else the context."""
    keys = ("cpu_offload_gb", "gpu_memory_utilization", "max_model_len")
    return next((option_path(key) for key in keys if option_given(subject.options, key)), ("engine", "options"))


def way_out(plan: MemoryPlan) -> str:
    """The hint that would make it fit."""
    length = plan.estimated_max_model_len
    return "offload more, or raise gpu_memory_utilization" + (f"; max_model_len {length} would fit" if length else "")


def _kv_cache_short(subject: LintSubject, plan: MemoryPlan) -> Finding:
    left = plan.hbm.kv_cache_gib or 0.0
    needed = f"one request of {plan.max_model_len:,} tokens needs {plan.needed_gib:.2f}"
    setting = f"offload {subject.vllm.offload.gigabytes:g} at {subject.vllm.gpu_memory_utilization:g}"
    message = f"{setting} leaves {left:.2f} GiB of KV cache, but {needed} ({plan.basis})"
    return Finding(deciding_place(subject), message, way_out(plan))


@vllm_rule("MEM001", "error")
def kv_cache_does_not_fit(subject: LintSubject) -> Iterator[Finding]:
    """The remaining KV cache does not hold one request of the full context length.

    Why: The engine detects this only after it loaded 510 GB: at least six minutes per attempt, more from a network
    share.
    Fix: Offload more (in steps of whole tensors), raise the utilization, or shorten the context.
    """
    fitting = judged(subject)
    if fitting is not None and fitting.plan.verdict == "refused" and fitting.failed is None:
        finding = _kv_cache_short(subject, fitting.plan)
        yield replace(finding, severity="warning") if fitting.plan.basis == "assumed" else finding


@vllm_rule("MEM002", "warning")
def kv_cache_short(subject: LintSubject) -> Iterator[Finding]:
    """The KV cache holds one request of the full context length with almost nothing to spare.

    Why: Two boots of one release differ by 0.02 GiB, and a patch cost 0.13 GiB. The release may boot today and fail
    tomorrow.
    Fix: Offload one more tensor, or shorten the context.
    """
    fitting = judged(subject)
    if fitting is not None and fitting.plan.verdict == "short":
        yield _kv_cache_short(subject, fitting.plan)


@vllm_rule("MEM003", "warning")
def host_memory_overcommitted(subject: LintSubject) -> Iterator[Finding]:
    """The host may not have enough memory for the pinned weights.

    Why: Pinned tensors can be rounded up to a power of two (4.2 GiB takes 8 GiB). 305 GiB became 504 GiB resident, and
    the kernel killed the engine without a line in its log. All experts and Engram together (486 GB) never booted.
    Fix: Lower `cpu_offload_gb`.
    """
    fitting = judged(subject)
    if fitting is None or subject.vllm.offload.gigabytes <= 0:
        return
    host = fitting.plan.host
    verdict = host_verdict(host)
    if verdict != "fits":
        parts = f"{host.offloaded_gib:.1f} GiB of weights and {host.engram_gib:.1f} GiB of tables"
        held = f"{host.peak_gib:.0f} GiB of host memory, where about {STATION.available_gib:.0f} GiB are available"
        needed = f", and the launch needs {host.needed_gib:.0f} GiB" if host.needed_gib is not None else ""
        message = f"{parts} occupy {held}{needed}"
        severity: Severity = "error" if verdict == "refused" else "warning"
        yield Finding(option_path("cpu_offload_gb"), message, "lower cpu_offload_gb", severity=severity)


@vllm_rule("MEM004", "warning")
def utilization_near_all(subject: LintSubject) -> Iterator[Finding]:
    """The engine may use almost the whole GPU.

    Why: The engine refuses to start if less than this share is free, and the driver, the CUDA context and short-lived
    processes need some. 0.97 is the highest share that booted here.
    Fix: Write at most 0.97.
    """
    share = subject.vllm.gpu_memory_utilization
    if HIGHEST_SHARE < share <= 1:
        message = f"gpu_memory_utilization {share:g} leaves too little for the driver and CUDA"
        yield Finding(option_path("gpu_memory_utilization"), message, "write at most 0.97")


# Of two options that size the same memory, the engine uses the first.
_OVERRIDES = (
    ("num_gpu_blocks_override", "kv_cache_memory_bytes"),
    ("hicache_size", "hicache_ratio"),
)
_ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
_NO_UVA = "VLLM_WEIGHT_OFFLOADING_DISABLE_UVA"


@rule("MEM005", "warning")
def memory_settings_conflict(subject: LintSubject) -> Iterator[Finding]:
    """Two settings of the memory contradict each other.

    Why: The engine uses one of them without a warning, or exits: sleep mode rejects expandable segments, and CUDA
    graphs need UVA to read offloaded weights. A container with less memory than the offload is killed without a log.
    Fix: Keep the setting that you mean.
    """
    options, env = subject.options, subject.container.env
    for winner, loser in _OVERRIDES:
        if option_given(options, winner) and option_given(options, loser):
            yield Finding(option_path(loser), f"{winner} overrides {loser}", "keep one of them", of_key=True)
    for name in _ALLOCATOR:
        if options.get("enable_sleep_mode") is True and "expandable_segments:true" in env.get(name, "").lower():
            message = "enable_sleep_mode does not start with expandable segments"
            hint = "remove expandable_segments, or enable_sleep_mode"
            yield Finding(("container", "env", name), message, hint, of_key=True, severity="error")
    gigabytes = number(options.get("cpu_offload_gb")) or 0
    if gigabytes > 0 and env.get(_NO_UVA, "").lower() in ("1", "true") and not subject.vllm.enforce_eager:
        message = f"{_NO_UVA} disables the uva backend, and CUDA graphs cannot read offloaded weights without it"
        yield Finding(("container", "env", _NO_UVA), message, "remove the variable", of_key=True)
    limit = parse_size(subject.container.memory or "")
    needed = subject.fitting.plan.host.resident_gib if subject.fitting else gigabytes
    if limit is not None and 0 < limit.bytes < needed * GIB:
        message = f"the container may use {limit.bytes / GIB:.1f} GiB, but the offloaded weights need {needed:.1f} GiB"
        yield Finding(("container", "memory"), message, "raise the limit, or remove it")


# From here on one prompt occupies several seconds of steps that short requests wait for.
_LONG = 262144
_THRESHOLD = 6144
_SCALE = {"k": 1000, "m": 1000_000}
_BINARY = {"k": 1024, "m": 1024 * 1024}
_PROMISE = re.compile(r"(?<![\w.,-])(\d+(?:[.,]\d+)?)[ -]?([kKmM])(?:i?[bB]?)?(?![A-Za-z0-9])(?! ?/ ?s)")
_MILLIONS = re.compile(r"\b(half a|a|one|two|three|four|five|ten)[ -]million\b", re.IGNORECASE)
_COUNTS = {"half a": 0.5, "a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}
_PLAIN = re.compile(r"(?<![\w.,-])(\d{5,8}|\d{1,3}(?:[, ]\d{3})+)(?: ?-?tokens?| context)")
# Titles round: 131,072 is written as 128K and as 131K.
_ROUNDED = 0.04
_SHORTEST = 2048


@vllm_rule("LEN001", "error")
def context_above_model(subject: LintSubject) -> Iterator[Finding]:
    """The context is longer than the model supports.

    Why: The engine rejects it before it loads weights (`greater than the derived max_model_len`).
    Fix: Write at most the context length of the model.
    """
    context, known = subject.vllm.max_model_len, subject.checkpoint
    allowed = subject.container.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1" or "hf_overrides" in subject.options
    if known is not None and context is not None and context > known.max_position_embeddings and not allowed:
        message = f"max_model_len is {context}, but the model supports {known.max_position_embeddings}"
        yield Finding(option_path("max_model_len"), message, f"write {known.max_position_embeddings}")


def threshold_below(batch: int) -> int:
    """The threshold for long prompts with `batch` tokens per step: three quarters of a step, at most the proven one."""
    return max(1, min(_THRESHOLD, batch * 3 // 4))


@vllm_rule("LEN002", "warning")
def threshold_without_effect(subject: LintSubject) -> Iterator[Finding]:
    """`long_prefill_token_threshold` is not below `max_num_batched_tokens` and has no effect.

    Why: A prompt never gets more than `max_num_batched_tokens` per step. Short requests waited 18.2 s behind a prompt
    of 480,000 tokens; a threshold of 6,144 with 8,192 batched tokens reduced that to 1.09 s.
    Fix: Write about three quarters of `max_num_batched_tokens`.
    """
    threshold, batch = subject.vllm.long_prefill_token_threshold, subject.vllm.max_num_batched_tokens
    if threshold and batch is not None and threshold >= batch:
        message = f"long_prefill_token_threshold {threshold} has no effect: max_num_batched_tokens is {batch}"
        yield Finding(option_path("long_prefill_token_threshold"), message, f"write {threshold_below(batch)}")


@vllm_rule("LEN003", "error")
def threshold_above_context(subject: LintSubject) -> Iterator[Finding]:
    """`long_prefill_token_threshold` is above `max_model_len`.

    Why: The engine rejects this combination before it loads weights.
    Fix: Write a threshold below `max_model_len`.
    """
    threshold, context = subject.vllm.long_prefill_token_threshold, subject.vllm.max_model_len
    if threshold is not None and context is not None and threshold > context > 0:
        message = f"long_prefill_token_threshold is {threshold}, but max_model_len is {context}"
        yield Finding(option_path("long_prefill_token_threshold"), message, "write less than max_model_len")


@vllm_rule("LEN004", "error")
def batch_below_seats(subject: LintSubject) -> Iterator[Finding]:
    """`max_num_batched_tokens` is below `max_num_seqs`.

    Why: Each running sequence needs one token per step. The engine rejects this combination before it loads weights.
    Fix: Raise `max_num_batched_tokens`; 8192 is common.
    """
    batch, most = subject.vllm.max_num_batched_tokens, subject.vllm.max_num_seqs
    active = length(subject.options.get("max_num_active_seqs"))
    if most is not None and batch is not None and batch < most:
        message = f"max_num_batched_tokens is {batch}, but max_num_seqs is {most}"
        yield Finding(option_path("max_num_batched_tokens"), message, "write at least max_num_seqs; 8192 is common")
    if most is not None and active is not None and active > most:
        message = f"max_num_active_seqs is {active}, but max_num_seqs is {most}"
        yield Finding(option_path("max_num_active_seqs"), message, "write at most max_num_seqs")


@vllm_rule("LEN005", "error")
def batch_below_context(subject: LintSubject) -> Iterator[Finding]:
    """Chunked prefill is off, and a prompt of full length does not fit into one step.

    Why: Without chunks a prompt is computed in one step. The engine rejects a context above `max_num_batched_tokens`.
    Fix: Remove `enable_chunked_prefill: false`.
    """
    batch, context = subject.vllm.max_num_batched_tokens, subject.vllm.max_model_len
    chunked = subject.options.get("enable_chunked_prefill") is not False
    if not chunked and batch is not None and context is not None and batch < context:
        message = f"without chunked prefill max_num_batched_tokens {batch} must hold max_model_len {context}"
        yield Finding(option_path("enable_chunked_prefill"), message, "remove it", of_key=True)


@rule("LEN006", "warning")
def title_promises_other_context(subject: LintSubject) -> Iterator[Finding]:
    """The title promises another context length than the engine serves.

    Why: Users who choose a release by its title send prompts that are rejected, or never use the full context.
    Fix: Correct the title or `max_model_len`.
    """
    served = _served(subject)
    if served is None or served <= 0:
        return
    promised = list(_promises(subject.recipe.title))
    if promised and not any(abs(served - tokens) <= _ROUNDED * tokens for _, lengths in promised for tokens in lengths):
        message = f"the title promises {', '.join(text for text, _ in promised)}, but the engine serves {served} tokens"
        yield Finding(("title",), message, "correct the title, or the context length")


def _served(subject: LintSubject) -> int | None:
    if not subject.is_vllm:
        return si_length(subject.options.get("context_length"))
    given, known = subject.vllm.max_model_len, subject.checkpoint
    return known.max_position_embeddings if given is None and known is not None else given


def _promises(title: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Each length in a title, as written and as tokens (decimal and binary)."""
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


@vllm_rule("LEN007", "note")
def no_long_prefill_threshold(subject: LintSubject) -> Iterator[Finding]:
    """Long prompts may delay short requests.

    Why: Behind a prompt of 480,000 tokens short requests waited 18.2 s for their first token. A threshold of 6144
    reduced that to 0.89 to 1.09 s; the long prompt took 16 % longer.
    Fix: Add `long_prefill_token_threshold: 6144` (below `max_num_batched_tokens`).
    """
    view, batch = subject.vllm, subject.vllm.max_num_batched_tokens
    has_several_streams = view.max_num_seqs is None or view.max_num_seqs > 1
    is_long = view.max_model_len is not None and view.max_model_len >= _LONG
    if is_long and has_several_streams and not view.long_prefill_token_threshold:
        message = "short requests wait for the whole prefill of a long one: long_prefill_token_threshold is not set"
        hint = f"add `long_prefill_token_threshold: {_THRESHOLD if batch is None else threshold_below(batch)}`"
        yield Finding(option_path("max_model_len"), message, hint, of_key=True)
