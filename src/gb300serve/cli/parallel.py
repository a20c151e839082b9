"""The same work on many items, over the processors where that pays."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from typing import Generic, TypeVar

from gb300serve.core.errors import Gb300Error

T = TypeVar("T")
R = TypeVar("R")

# Starting two processes costs about 30 ms, as much as the verdicts over 40 recipes.
FEWEST = 200
CHUNK = 50


class _Work(Generic[T, R]):
    """What a forked process does with a chunk. An error of ours is left to the parent, which raises it itself."""

    def __init__(self, function: Callable[[T], R]) -> None:
        self.function = function

    def on(self, items: Sequence[T]) -> list[R] | None:
        try:
            return [self.function(item) for item in items]
        except Gb300Error:
            return None


_inherited: _Work[object, object] | None = None


def spread(function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """`function` of each item, in their order. It runs in forked processes for many items, so it must only return."""
    processors = _processors()
    if len(items) < FEWEST or processors < 2:
        return map(function, items)
    chunks = [items[start : start + CHUNK] for start in range(0, len(items), CHUNK)]
    return chain.from_iterable(_forked(function, chunks, processors))


def _forked(function: Callable[[T], R], chunks: list[Sequence[T]], processors: int) -> Iterator[list[R]]:
    global _inherited  # noqa: PLW0603 - a fork inherits it: closures cannot be sent to a process, and need not be
    work: _Work[T, R] = _Work(function)
    _inherited = work  # type: ignore[assignment] # of any item: only chunks of these items are sent
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(min(processors, len(chunks)), fork, initializer=_leave_interrupts) as pool:
        answers: Iterator[list[R] | None] = pool.map(_in_child, chunks)
        for chunk, done in zip(chunks, answers, strict=True):
            yield [function(item) for item in chunk] if done is None else done


def _in_child(chunk: Sequence[T]) -> list[R] | None:
    if _inherited is None:
        return None
    return _inherited.on(chunk)  # type: ignore[return-value] # what the parent's function returns


def _leave_interrupts() -> None:
    """Ctrl-C is the parent's: it stops handing out chunks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _processors() -> int:
    """Those we may use; one where processes cannot be forked safely (macOS)."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
