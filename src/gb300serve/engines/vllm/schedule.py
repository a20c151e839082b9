"""The draft length by batch size (`num_speculative_tokens_per_batch_size`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from gb300serve.core.values import Value, compact_json
from gb300serve.engines.base import Path, Problem, is_list, is_whole

SCHEDULE = "num_speculative_tokens_per_batch_size"
Tiers: TypeAlias = tuple[tuple[int, int, int], ...]
"""(first batch size, last batch size, drafted tokens), both sizes included."""


def check_schedule(config: Value) -> Iterator[Problem]:
    """The problems for which the engine rejects a schedule.

    It checks the shape at the start, the rest only when it builds the scheduler, after weights and KV cache: on a
    Station minutes into the boot. It accepts gaps, unsorted tiers and tiers beyond `max_num_seqs`.
    """
    value = config.get(SCHEDULE) if isinstance(config, Mapping) else None
    path: Path = ("speculative_config", SCHEDULE)
    if value is None:
        return
    if not is_list(value):
        yield _refused(path, f"is {compact_json(value)}, not a list of [start, end, tokens]")
    elif not value:
        yield _refused(path, "is empty", "write at least [1, N, tokens], or leave it out")
    else:
        shapes = [problem for index, item in enumerate(value) for problem in _check_shape((*path, index), item)]
        yield from shapes or _check_ranges(path, tiers(value))


def _check_shape(path: Path, item: Value) -> Iterator[Problem]:
    if not (is_list(item) and len(item) == 3 and all(map(is_whole, item))):
        yield _refused(path, f"is {compact_json(item)}, not three whole numbers", "write [start, end, tokens]")


def _check_ranges(path: Path, written: Tiers) -> Iterator[Problem]:
    for index, (start, end, tokens) in enumerate(written):
        said, place = f"is [{start}, {end}, {tokens}]", (*path, index)
        if start <= 0 or end <= 0:
            yield _refused(place, f"{said}: batch sizes count from 1", "write a start and an end of at least 1")
        elif start > end:
            yield _refused(place, f"{said}: it ends before it starts", f"write [{end}, {start}, {tokens}]")
        if tokens < 0:
            yield _refused(place, f"{said}: fewer than no tokens", "write 0 to draft nothing")
    order = sorted(range(len(written)), key=lambda index: written[index])
    for before, after in pairwise(order):
        (begins, ends, _), (start, *_) = written[before], written[after]
        if begins <= ends and start <= ends:
            yield _refused((*path, after), f"starts at {start}, inside the range before it, which ends at {ends}")
    start, end, tokens = written[order[0]]
    if start > 1:
        message = f"starts at {start}: the first range must start at 1, so that every batch size has a length"
        yield _refused((*path, order[0]), message, f"write [1, {end}, {tokens}]")


def _refused(path: Path, what: str, hint: str | None = None) -> Problem:
    return Problem(path, "OPT010", f"{'.'.join(map(str, path))} {what}", hint)


def tiers(value: Value) -> Tiers:
    """The (start, end, tokens) of a schedule in their written order; items of another shape are left out."""
    found = []
    for item in value if is_list(value) else ():
        if is_list(item) and len(item) == 3:
            start, end, tokens = item
            if is_whole(start) and is_whole(end) and is_whole(tokens):
                found.append((start, end, tokens))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Tier:
    """`tokens` drafted per step from `start` to `end` running sequences, both included; 0 disables drafting."""

    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class SpeculationOptions:
    """The options of the drafter. Without a `model`, DSpark drafts with the target checkpoint's own head."""

    method: str | None
    model: str | None
    num_speculative_tokens: int | None
    schedule: tuple[Tier, ...]
    """Sorted by batch size, as in the engine; empty without a schedule."""

    def tokens_at(self, batch: int) -> int:
        """Tokens drafted per step with this many running sequences.

        As in the scheduler, a tier also covers the gap after it, and `num_speculative_tokens` is the limit.
        """
        most = self.num_speculative_tokens or 0
        if not self.schedule:
            return most
        tokens = next((tier.tokens for tier in reversed(self.schedule) if tier.start <= batch), most)
        return min(tokens, most) if self.num_speculative_tokens is not None else tokens


def speculation(value: Value) -> SpeculationOptions | None:
    """The typed form of `speculative_config`; values of a wrong type count as not set."""
    if not isinstance(value, Mapping):
        return None
    method, model, tokens = value.get("method"), value.get("model"), value.get("num_speculative_tokens")
    return SpeculationOptions(
        method=method if isinstance(method, str) else None,
        model=model if isinstance(model, str) else None,
        num_speculative_tokens=tokens if is_whole(tokens) else None,
        schedule=tuple(Tier(*tier) for tier in sorted(tiers(value.get(SCHEDULE)))),
    )
