"""Speculation: draft lengths that the engine cuts, carries on or drops in silence, and graphs too small for them."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from gb300serve.core.diagnostics import Severity
from gb300serve.core.rules import Finding
from gb300serve.document.nodes import Path
from gb300serve.engines.base import is_whole
from gb300serve.engines.vllm.schedule import SCHEDULE, SpeculationOptions, tiers
from gb300serve.lint.known import divides_draft, drafter_block, runner_v2_ignores
from gb300serve.lint.rules.offload import uses_runner_v2
from gb300serve.lint.subject import LintSubject, option_path, vllm_rule

_CONFIG = "speculative_config"
_NEED_A_MODEL = frozenset({"eagle", "eagle3", "draft_model", "medusa", "mlp_speculator", "dflash"})
# From this many sequences on a static draft length was measured to cost: 237 against 319 tokens a second at 8.
_MANY = 8


def _drafts(subject: LintSubject) -> SpeculationOptions | None:
    return subject.vllm.speculation if subject.vllm is not None else None


def _tier(subject: LintSubject, start: int) -> Path:
    """The place of the tier that begins at `start`: the schedule is judged sorted, and shown as written."""
    written = tiers(subject.options[_CONFIG][SCHEDULE])
    index = next(index for index, tier in enumerate(written) if tier[0] == start)
    return option_path(_CONFIG, SCHEDULE, index)


@vllm_rule("SPC001", "warning")
def schedule_gap(subject: LintSubject) -> Iterator[Finding]:
    """Batch sizes between two ranges of the schedule are in neither.

    Why: the engine carries the draft length before the gap on, without a word: the larger batches then draft as much as
    the small ones, and each draft costs expert reads.
    Fix: let each range begin one after the end of the range before it.
    """
    drafts = _drafts(subject)
    for before, after in pairwise(drafts.schedule if drafts else ()):
        if after.start > before.end + 1:
            gap = str(before.end + 1) if after.start == before.end + 2 else f"{before.end + 1} to {after.start - 1}"
            message = f"{SCHEDULE} has a gap: batch size {gap} is in no range and keeps {before.tokens}"
            yield Finding(
                _tier(subject, after.start), message, f"write [{before.end + 1}, {after.end}, {after.tokens}]"
            )


@vllm_rule("SPC002", "warning")
def schedule_ends_early(subject: LintSubject) -> Iterator[Finding]:
    """The schedule's last range ends before `max_num_seqs`.

    Why: the engine carries the last draft length on; whether that was meant nobody can tell.
    Fix: end the last range at `max_num_seqs`.
    """
    drafts, most = _drafts(subject), subject.vllm.max_num_seqs if subject.vllm else None
    if drafts is not None and drafts.schedule and most is not None and drafts.schedule[-1].end < most:
        last = drafts.schedule[-1]
        message = f"{SCHEDULE} ends at batch size {last.end}, and max_num_seqs is {most}"
        yield Finding(_tier(subject, last.start), message, f"write [{last.start}, {most}, {last.tokens}]")


@vllm_rule("SPC003", "warning")
def schedule_past_max_num_seqs(subject: LintSubject) -> Iterator[Finding]:
    """The schedule speaks of more sequences than the engine takes.

    Why: the part above `max_num_seqs` is cut off: either the schedule was made for another number of seats, or the
    seats were forgotten (24 streams on 16 seats waited 27 s, with most of the KV cache empty).
    Fix: end the last range at `max_num_seqs`, or raise `max_num_seqs`.
    """
    drafts, most = _drafts(subject), subject.vllm.max_num_seqs if subject.vllm else None
    if drafts is not None and drafts.schedule and most is not None and drafts.schedule[-1].end > most:
        last = drafts.schedule[-1]
        message = f"{SCHEDULE} speaks of {last.end} sequences, and max_num_seqs is {most}"
        yield Finding(_tier(subject, last.start), message, f"end it at {most}, or write max_num_seqs: {last.end}")


@vllm_rule("SPC004", "warning")
def schedule_above_draft_length(subject: LintSubject) -> Iterator[Finding]:
    """A range of the schedule drafts more than `num_speculative_tokens`.

    Why: the engine cuts it down to `num_speculative_tokens` without a word.
    Fix: raise `num_speculative_tokens` (graphs and buffers grow with it), or lower the range.
    """
    drafts = _drafts(subject)
    if drafts is None or drafts.num_speculative_tokens is None:
        return
    for tier in drafts.schedule:
        if tier.tokens > drafts.num_speculative_tokens:
            most = drafts.num_speculative_tokens
            message = f"{tier.tokens} draft tokens are scheduled, and num_speculative_tokens is {most}"
            hint = f"write [{tier.start}, {tier.end}, {drafts.num_speculative_tokens}]"
            yield Finding(_tier(subject, tier.start), message, hint)


@vllm_rule("SPC005", "warning")
def draft_longer_than_block(subject: LintSubject) -> Iterator[Finding]:
    """More tokens are drafted at once than the checkpoint's drafter was made for.

    Why: seven tokens from a drafter with a block of five took the acceptance of all positions from 34.7 to 4.4 %; vLLM
    0.30 refuses a length that is no multiple of the block.
    Fix: write at most the block.
    """
    drafts, known = _drafts(subject), subject.checkpoint
    if drafts is None or known is None or drafts.method != known.drafter or drafts.num_speculative_tokens is None:
        return
    block = drafter_block(known.repo)
    if block is not None and drafts.num_speculative_tokens > block:
        refused = divides_draft(subject.version) and drafts.num_speculative_tokens % block
        message = f"num_speculative_tokens is {drafts.num_speculative_tokens}, and the drafter's block is {block}"
        place = option_path(_CONFIG, "num_speculative_tokens")
        yield Finding(place, message, f"write {block}", severity="error" if refused else None)


@vllm_rule("SPC006", "error")
def method_of_another_model(subject: LintSubject) -> Iterator[Finding]:
    """The checkpoint has no drafter for this method.

    Why: DeepSeek V4.1 has no classic MTP head: the engine refuses `mtp` after it read the configuration.
    Fix: write the checkpoint's own method.
    """
    drafts, known = _drafts(subject), subject.checkpoint
    if (
        drafts is not None
        and known is not None
        and drafts.method in ("mtp", "dspark", "deepseek_mtp")
        and drafts.model is None
        and drafts.method != known.drafter
    ):
        message = f"{known.repo} has no drafter for method {drafts.method}"
        yield Finding(option_path(_CONFIG, "method"), message, f"write {known.drafter}")


@vllm_rule("SPC007", "error")
def drafter_missing(subject: LintSubject) -> Iterator[Finding]:
    """The method drafts with a model of its own, and none is named.

    Why: the engine refuses the configuration, or tries to draft with the target itself.
    Fix: mount the draft model (`models:`) and write its mount as `model`.
    """
    drafts = _drafts(subject)
    if drafts is not None and drafts.method in _NEED_A_MODEL and drafts.model is None:
        message = f"method {drafts.method} needs a draft model, and speculative_config has no `model`"
        yield Finding(option_path(_CONFIG), message, "add `model: /draft`, the mount of the drafter", of_key=True)


@vllm_rule("SPC008", "warning")
def schedule_dropped(subject: LintSubject) -> Iterator[Finding]:
    """The engine drops the schedule of draft lengths.

    Why: with data parallelism it says so in one warning among hundreds of lines; on model runner V2 releases are
    reported to ignore it without one (vllm issue 51510). The day-0 build is known to follow it.
    Fix: compare the speed at many streams with and without the schedule before relying on it.
    """
    drafts, view = _drafts(subject), subject.vllm
    if drafts is None or view is None or not drafts.schedule:
        return
    place = option_path(_CONFIG, SCHEDULE)
    if view.data_parallel_size > 1:
        yield Finding(
            place, "the engine drops the schedule when data_parallel_size is above 1", "remove it", of_key=True
        )
    elif runner_v2_ignores(subject.version) and uses_runner_v2(subject):
        message = f"vllm {subject.version} runs this with model runner V2, which is reported to ignore the schedule"
        yield Finding(place, message, "measure many streams with and without it", of_key=True)


@vllm_rule("SPC009", "warning")
def capture_sizes_in_sequences(subject: LintSubject) -> Iterator[Finding]:
    """The CUDA graphs do not cover the tokens of a full batch.

    Why: capture sizes are tokens: n sequences that draft k make n x (1 + k) of them. Sizes written in sequences left
    everything above without a graph: 9.6 tokens a second and stream at 16 streams, with a healthy time to first token.
    Fix: multiply by the draft length plus one, up to `max_num_seqs`.
    """
    view = subject.vllm
    given = _largest_capture(subject)
    if view is None or given is None or view.max_num_seqs is None or view.enforce_eager:
        return
    place, largest = given
    drafts = view.speculation
    full = max(_tokens(drafts, batch) for batch in _edges(drafts, view.max_num_seqs))
    if 0 < largest < full:
        what = (
            "tokens, not sequences" if drafts is not None and drafts.num_speculative_tokens else "short of max_num_seqs"
        )
        message = (
            f"the largest capture size is {largest} ({what}): a full batch has {full} tokens and runs without a graph"
        )
        sizes = sorted({_tokens(drafts, batch) for batch in _edges(drafts, view.max_num_seqs)})
        severity: Severity | None = None if drafts is not None and drafts.num_speculative_tokens else "note"
        yield Finding(
            place, message, f"add {', '.join(map(str, (size for size in sizes if size > largest)))}", severity=severity
        )


def _tokens(drafts: SpeculationOptions | None, batch: int) -> int:
    return batch * (1 + (drafts.tokens_at(batch) if drafts else 0))


def _edges(drafts: SpeculationOptions | None, most: int) -> list[int]:
    """The batch sizes at which the number of tokens can be largest: ends of ranges, and the full batch."""
    return sorted({min(tier.end, most) for tier in drafts.schedule} | {most} if drafts else {most})


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
    """The same number of tokens is drafted at every batch size.

    Why: at many streams drafts cost more expert reads than they save: a schedule took 8 streams from 234 to 319 and 16
    from 311 to 429 tokens a second, and one stream stayed the same.
    Fix: add `num_speculative_tokens_per_batch_size`, such as [[1, 4, 5], [5, 16, 1]].
    """
    drafts, view = _drafts(subject), subject.vllm
    if drafts is None or view is None or drafts.schedule or (drafts.num_speculative_tokens or 0) < 2:
        return
    if view.max_num_seqs is None or view.max_num_seqs >= _MANY:
        message = f"{drafts.num_speculative_tokens} tokens are drafted at every batch size"
        place = option_path(_CONFIG, "num_speculative_tokens")
        yield Finding(place, message, f"a schedule ({SCHEDULE}) drafts less when many stream")


@vllm_rule("SPC011", "error")
def runner_cannot_draft(subject: LintSubject) -> Iterator[Finding]:
    """The recipe forces a model runner that does not know the method.

    Why: model runner V1 has no DSpark: the engine says `Model Runner V1 does not support: dspark` and ends.
    Fix: remove `VLLM_USE_V2_MODEL_RUNNER`.
    """
    drafts = _drafts(subject)
    forced = subject.container.env.get("VLLM_USE_V2_MODEL_RUNNER")
    if drafts is not None and drafts.method == "dspark" and forced in ("0", "false", "False"):
        place = ("container", "env", "VLLM_USE_V2_MODEL_RUNNER")
        yield Finding(place, "model runner V1 does not know dspark", "remove the variable")
