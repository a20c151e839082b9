"""Rules for speculative decoding: gaps in the k-schedule, draft lengths cut or ignored, CUDA graphs too small."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from gb300serve.core.diagnostics import Severity
from gb300serve.core.rules import Finding
from gb300serve.document.nodes import Path
from gb300serve.engines.base import is_whole
from gb300serve.engines.vllm.schedule import SCHEDULE, Tier, tiers
from gb300serve.lint.known import divides_draft, drafter_block, runner_v2_ignores
from gb300serve.lint.rules.offload import uses_runner_v2
from gb300serve.lint.subject import LintSubject, option_path, vllm_rule

_CONFIG = "speculative_config"
_NEED_A_MODEL = frozenset({"eagle", "eagle3", "draft_model", "medusa", "mlp_speculator", "dflash"})
# From this many sequences on a static draft length was measured to cost: 237 against 319 tokens a second at 8.
_MANY = 8


def _tier(subject: LintSubject, start: int) -> Path:
    """The place of the tier that begins at `start`: rules sort the schedule, findings point to it as written."""
    written = tiers(subject.options[_CONFIG][SCHEDULE])
    index = next(index for index, tier in enumerate(written) if tier[0] == start)
    return option_path(_CONFIG, SCHEDULE, index)


@vllm_rule("SPC001", "warning")
def schedule_gap(subject: LintSubject) -> Iterator[Finding]:
    """The schedule of draft lengths has a gap.

    Why: The engine keeps the draft length before the gap, without a warning. Larger batches then draft too much, and
    each draft costs expert reads.
    Fix: Start each range directly after the end of the range before it.
    """
    drafts = subject.vllm.speculation
    for before, after in pairwise(drafts.schedule if drafts else ()):
        if after.start > before.end + 1:
            first, last = before.end + 1, after.start - 1
            gap = f"{first}" if first == last else f"{first} to {last}"
            message = f"{SCHEDULE} has a gap: batch size {gap} is in no range and keeps {before.tokens}"
            yield Finding(_tier(subject, after.start), message, f"write [{first}, {after.end}, {after.tokens}]")


def _last_tier(subject: LintSubject) -> Tier | None:
    drafts = subject.vllm.speculation
    return drafts.schedule[-1] if drafts and drafts.schedule else None


@vllm_rule("SPC002", "warning")
def schedule_ends_early(subject: LintSubject) -> Iterator[Finding]:
    """The schedule ends before `max_num_seqs`.

    Why: The engine keeps the last draft length for larger batches, which may not be intended.
    Fix: End the last range at `max_num_seqs`.
    """
    last, most = _last_tier(subject), subject.vllm.max_num_seqs
    if last is not None and most is not None and last.end < most:
        message = f"{SCHEDULE} ends at batch size {last.end}, but max_num_seqs is {most}"
        yield Finding(_tier(subject, last.start), message, f"write [{last.start}, {most}, {last.tokens}]")


@vllm_rule("SPC003", "warning")
def schedule_past_max_num_seqs(subject: LintSubject) -> Iterator[Finding]:
    """The schedule covers more sequences than `max_num_seqs`.

    Why: The engine cuts the part above `max_num_seqs`. Either the schedule is for another size, or `max_num_seqs` is
    too low (24 streams on 16 slots waited 27 s with most of the KV cache empty).
    Fix: End the last range at `max_num_seqs`, or raise `max_num_seqs`.
    """
    last, most = _last_tier(subject), subject.vllm.max_num_seqs
    if last is not None and most is not None and last.end > most:
        message = f"{SCHEDULE} covers {last.end} sequences, but max_num_seqs is {most}"
        yield Finding(_tier(subject, last.start), message, f"end it at {most}, or write max_num_seqs: {last.end}")


@vllm_rule("SPC004", "warning")
def schedule_above_draft_length(subject: LintSubject) -> Iterator[Finding]:
    """A range of the schedule drafts more than `num_speculative_tokens`.

    Why: The engine reduces it to `num_speculative_tokens` without a warning.
    Fix: Raise `num_speculative_tokens` (graphs and buffers grow with it), or lower the range.
    """
    drafts = subject.vllm.speculation
    most = drafts.num_speculative_tokens if drafts else None
    for tier in drafts.schedule if drafts else ():
        if most is not None and tier.tokens > most:
            message = f"{tier.tokens} draft tokens are scheduled, but num_speculative_tokens is {most}"
            yield Finding(_tier(subject, tier.start), message, f"write [{tier.start}, {tier.end}, {most}]")


@vllm_rule("SPC005", "warning")
def draft_longer_than_block(subject: LintSubject) -> Iterator[Finding]:
    """The draft length exceeds the block of the checkpoint's drafter.

    Why: Seven tokens from a drafter with a block of five reduced the acceptance over all positions from 34.7 to 4.4 %.
    vLLM 0.30 rejects a length that is not a multiple of the block.
    Fix: Write at most the block.
    """
    drafts, known = subject.vllm.speculation, subject.checkpoint
    if drafts is None or known is None or drafts.method != known.drafter:
        return
    block, tokens = drafter_block(known.repo), drafts.num_speculative_tokens
    if block is not None and tokens is not None and tokens > block:
        severity: Severity = "error" if divides_draft(subject.version) and tokens % block else "warning"
        message = f"num_speculative_tokens is {tokens}, but the drafter's block is {block}"
        yield Finding(option_path(_CONFIG, "num_speculative_tokens"), message, f"write {block}", severity=severity)


@vllm_rule("SPC006", "error")
def method_of_another_model(subject: LintSubject) -> Iterator[Finding]:
    """The checkpoint has no drafter for this method.

    Why: DeepSeek V4.1 has no classic MTP head. The engine rejects `mtp` after it reads the configuration.
    Fix: Write the checkpoint's own method.
    """
    drafts, known = subject.vllm.speculation, subject.checkpoint
    if drafts is None or drafts.model is not None or drafts.method not in ("mtp", "dspark", "deepseek_mtp"):
        return
    if known is not None and drafts.method != known.drafter:
        message = f"{known.repo} has no drafter for method {drafts.method}"
        yield Finding(option_path(_CONFIG, "method"), message, f"write {known.drafter}")


@vllm_rule("SPC007", "error")
def drafter_missing(subject: LintSubject) -> Iterator[Finding]:
    """The method needs a separate draft model, and none is set.

    Why: The engine rejects the configuration, or drafts with the target model itself.
    Fix: Mount the draft model (`models:`) and write its mount as `model`.
    """
    drafts = subject.vllm.speculation
    if drafts is not None and drafts.method in _NEED_A_MODEL and drafts.model is None:
        message = f"method {drafts.method} needs a draft model, but speculative_config has no `model`"
        yield Finding(option_path(_CONFIG), message, "add `model: /draft`, the mount of the drafter", of_key=True)


@vllm_rule("SPC008", "warning")
def schedule_dropped(subject: LintSubject) -> Iterator[Finding]:
    """The engine ignores the schedule of draft lengths.

    Why: With data parallelism it logs one warning among hundreds of lines. On model runner V2 some releases are
    reported to ignore it without a warning (vllm issue 51510); the day-0 build follows it.
    Fix: Compare the speed at many streams with and without the schedule before you rely on it.
    """
    if _last_tier(subject) is None:
        return
    place = option_path(_CONFIG, SCHEDULE)
    if subject.vllm.data_parallel_size > 1:
        message = "the engine drops the schedule when data_parallel_size is above 1"
        yield Finding(place, message, "remove it", of_key=True)
    elif runner_v2_ignores(subject.version) and uses_runner_v2(subject):
        message = f"vllm {subject.version} runs this with model runner V2, which is reported to ignore the schedule"
        yield Finding(place, message, "measure many streams with and without it", of_key=True)


@vllm_rule("SPC009", "warning")
def capture_sizes_in_sequences(subject: LintSubject) -> Iterator[Finding]:
    """The CUDA graphs do not cover the tokens of a full batch.

    Why: Capture sizes count tokens: n sequences with k drafts are n x (1 + k) tokens. Sizes written in sequences gave
    9.6 tokens per second and stream at 16 streams, with a normal time to first token.
    Fix: Multiply by the draft length plus one, up to `max_num_seqs`.
    """
    view, given = subject.vllm, _largest_capture(subject)
    if given is None or view.max_num_seqs is None or view.enforce_eager:
        return
    (place, largest), drafts, most = given, view.speculation, view.max_num_seqs
    # The number of tokens can be largest at the end of each range and in the full batch.
    batches = {min(tier.end, most) for tier in drafts.schedule} | {most} if drafts else {most}
    sizes = sorted(batch * (1 + (drafts.tokens_at(batch) if drafts else 0)) for batch in batches)
    if 0 < largest < sizes[-1]:
        is_drafting = drafts is not None and bool(drafts.num_speculative_tokens)
        reason = "tokens, not sequences" if is_drafting else "short of max_num_seqs"
        full = f"a full batch has {sizes[-1]} tokens and runs without a graph"
        message = f"the largest capture size is {largest} ({reason}): {full}"
        hint = f"add {', '.join(str(size) for size in dict.fromkeys(sizes) if size > largest)}"
        yield Finding(place, message, hint, severity="warning" if is_drafting else "note")


def _largest_capture(subject: LintSubject) -> tuple[Path, int] | None:
    config = subject.options.get("compilation_config")
    for path, holder in ((option_path(), subject.options), (option_path("compilation_config"), config)):
        if not isinstance(holder, Mapping):
            continue
        sizes = holder.get("cudagraph_capture_sizes")
        if isinstance(sizes, list) and (numbers := [size for size in sizes if is_whole(size)]):
            return (*path, "cudagraph_capture_sizes"), max(numbers)
        if is_whole(most := holder.get("max_cudagraph_capture_size")):
            return (*path, "max_cudagraph_capture_size"), most
    return None


@vllm_rule("SPC010", "note")
def static_draft_length(subject: LintSubject) -> Iterator[Finding]:
    """The draft length is the same at every batch size.

    Why: At many streams drafts cost more expert reads than they save. A schedule raised 8 streams from 234 to 319 and
    16 streams from 311 to 429 tokens per second; one stream did not change.
    Fix: Add `num_speculative_tokens_per_batch_size`, such as [[1, 4, 5], [5, 16, 1]].
    """
    drafts, most = subject.vllm.speculation, subject.vllm.max_num_seqs
    if drafts is None or drafts.schedule or (drafts.num_speculative_tokens or 0) < 2:
        return
    if most is None or most >= _MANY:
        message = f"{drafts.num_speculative_tokens} tokens are drafted at every batch size"
        place = option_path(_CONFIG, "num_speculative_tokens")
        yield Finding(place, message, f"add a schedule ({SCHEDULE}) that drafts less at many streams")


@vllm_rule("SPC011", "error")
def runner_cannot_draft(subject: LintSubject) -> Iterator[Finding]:
    """The recipe forces a model runner that does not support the method.

    Why: Model runner V1 has no DSpark. The engine logs `Model Runner V1 does not support: dspark` and exits.
    Fix: Remove `VLLM_USE_V2_MODEL_RUNNER`.
    """
    drafts = subject.vllm.speculation
    forced = subject.container.env.get("VLLM_USE_V2_MODEL_RUNNER")
    if drafts is not None and drafts.method == "dspark" and forced in ("0", "false", "False"):
        place = ("container", "env", "VLLM_USE_V2_MODEL_RUNNER")
        yield Finding(place, "model runner V1 does not support dspark", "remove the variable")
