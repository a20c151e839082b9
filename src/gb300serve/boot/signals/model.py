"""What a line can mean, as data."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, IntEnum, auto
from typing import Literal, TypeAlias

from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason

Value: TypeAlias = "int | float | str"
EngineName: TypeAlias = Literal["vllm", "sglang"]


class LineMark(Enum):
    """What else a line says about the boot than its phase and its figures."""

    PREAMBLE = auto()
    """Printed before the arguments are parsed: the first thing that a process says."""
    ARGUMENTS = auto()
    """The engine's echo of the arguments that it got; once in a boot."""
    SIZED = auto()
    """The KV cache has its size: later graphs are the serving ones."""
    TUNING_LOADED = auto()
    TUNING_STARTS = auto()
    TUNING_ENDS = auto()
    BAR = auto()
    """A progress bar was redrawn."""
    TUNING_BAR = auto()
    GRAPH_BAR = auto()
    GRAPHS_CAPTURED = auto()
    COMPLETE = auto()
    STOP = auto()
    """The engine was asked to end."""
    DIED = auto()
    """A process of the engine is gone."""
    HEARTBEAT = auto()
    """Alive, but neither progress nor an error."""
    HOOK_ARMED = auto()
    HOOK_WORKS = auto()


class Rank(IntEnum):
    """How well a line explains a failure; the best one is the cause, among equals the first."""

    CLOSING = 0
    """Says that something failed, never what."""
    CLOSING_WORKER = 1
    """The same, nearer to the cause: of a process that the engine's process waited for."""
    BARE = 2
    """An exception without a message."""
    EXCEPTION = 3
    """An exception whose text is not in our tables."""
    CONSEQUENCE = 4
    """True, but rather the effect than the cause (a process ended by a signal)."""
    BROAD = 5
    """A text that several causes share."""
    SPECIFIC = 6


@dataclass(frozen=True, slots=True)
class Signal:
    """A line that begins with `start` and (where there is one) matches `pattern` from its beginning.

    Named groups of the pattern are the values of the receipt; numbers become numbers. `engine` is the only one whose
    logs the row is for (None: any). `tells`: no other engine prints such a line, so that it tells which one runs.
    """

    start: str
    pattern: re.Pattern[str] | None = None
    phase: Phase | None = None
    receipt: str | None = None
    mark: LineMark | None = None
    engine: EngineName | None = None
    tells: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """A line that contains `needle` and matches `pattern` anywhere explains a failure.

    `fatal`: the boot has failed when this line is seen; otherwise it only explains one that fails.
    `lasting`: it counts even when the server starts in spite of it.
    `refine` may turn the match into another reason.
    `engine` is the only one whose logs the row is for (None: any).
    """

    reason: Reason
    needle: str
    pattern: re.Pattern[str]
    rank: Rank = Rank.SPECIFIC
    fatal: bool = True
    lasting: bool = False
    refine: Callable[[Mapping[str, Value]], Reason] | None = None
    engine: EngineName | None = None


# Logs are cut and damaged: what is no number of a length that a figure has stays text.
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DECIMAL = re.compile(r"-?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})")


def number(text: str) -> Value:
    """`1,048,576` and `61.17` as numbers, anything else as it is."""
    plain = text.replace(",", "")
    if _WHOLE.fullmatch(plain):
        return int(plain)
    if _DECIMAL.fullmatch(plain):
        return float(plain)
    return text


def values_of(match: re.Match[str]) -> dict[str, Value]:
    """The named groups of a match that took part in it."""
    return {name: number(text) for name, text in match.groupdict().items() if text is not None}


def signal(  # the shape of one row of a table
    start: str,
    pattern: str | None = None,
    *,
    phase: Phase | None = None,
    receipt: str | None = None,
    mark: LineMark | None = None,
) -> Signal:
    """A row of a table of signals; `pattern` begins at the beginning of the line's text."""
    return Signal(start, re.compile(pattern) if pattern else None, phase, receipt, mark)


def cause(
    reason: Reason,
    needle: str,
    pattern: str | None = None,
    rank: Rank = Rank.SPECIFIC,
    engine: EngineName | None = None,
) -> Cause:
    """A row of a table of causes; without a pattern the needle is all of it."""
    return Cause(reason, needle, re.compile(pattern or re.escape(needle)), rank, engine=engine)


def said_by(engine: EngineName, signals: Iterable[Signal], *, tells: bool = True) -> tuple[Signal, ...]:
    """The same rows, for logs of this engine only."""
    return tuple(replace(row, engine=engine, tells=tells) for row in signals)
