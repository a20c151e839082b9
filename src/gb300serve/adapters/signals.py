"""Ctrl-C and SIGTERM, once each launch; and not at all while things are put in order."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias

_Handler: TypeAlias = "Callable[[int, FrameType | None], Any] | int | None"
_ASKING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def once() -> Iterator[None]:
    """The first of them raises KeyboardInterrupt; those that follow do nothing until the context ends."""

    def first(_number: int, _frame: FrameType | None) -> None:
        _set(dict.fromkeys(_ASKING, _ignored))
        raise KeyboardInterrupt

    before = _set(dict.fromkeys(_ASKING, first))
    try:
        yield
    finally:
        _set(before)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """None of them is heard until the context ends."""
    before = _set(dict.fromkeys(_ASKING, _ignored))
    try:
        yield
    finally:
        _set(before)


def _ignored(_number: int, _frame: FrameType | None) -> None:
    """A function and not SIG_IGN, which programs that are started meanwhile would inherit."""


def _set(handlers: dict[signal.Signals, _Handler]) -> dict[signal.Signals, _Handler]:
    """Returns those that were set before."""
    return {number: signal.signal(number, handler) for number, handler in handlers.items()}
