"""The rows of the signal tables, and what the boot machine needs to know of an engine's log."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from typing import TypeAlias

from gb300serve.boot.lines import HeaderForm
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.core.values import EngineName

Value: TypeAlias = "int | float | str"


class LineMark(Enum):
    """What a line means besides its phase and its figures."""

    PREAMBLE = auto()
    """Printed before the arguments are parsed: the first output of a process."""
    ARGUMENTS = auto()
    """The engine's echo of its arguments; once in a boot."""
    SIZED = auto()
    """The KV cache has its final size: graphs captured later are the ones used for serving."""
    TUNING_LOADED = auto()
    TUNING_STARTS = auto()
    TUNING_ENDS = auto()
    BAR = auto()
    """A progress bar."""
    TUNING_BAR = auto()
    GRAPH_BAR = auto()
    GRAPHS_CAPTURED = auto()
    COMPLETE = auto()
    STOP = auto()
    """The engine received the stop signal."""
    DIED = auto()
    """A process of the engine died."""
    HEARTBEAT = auto()
    """Alive, but neither progress nor an error."""
    HOOK_ARMED = auto()
    HOOK_WORKS = auto()


class Rank(IntEnum):
    """How well a line explains a failure. The highest rank is the cause; among equals, the first line."""

    CLOSING = 0
    """Only states that something failed."""
    NOTED = 1
    """A line of level ERROR whose text is not in the tables."""
    CLOSING_WORKER = 2
    """The same as CLOSING, closer to the cause: from a process that the engine's process waited for."""
    BARE = 3
    """An exception without a message, or a process that was ended by a signal."""
    EXCEPTION = 4
    """An exception whose text is not in the tables."""
    VAGUE = 5
    """A text that narrows the cause down, used if no other line explains it."""
    BROAD = 6
    """A text that several causes share."""
    SPECIFIC = 7


@dataclass(frozen=True, slots=True)
class Signal:
    """A line that begins with `start` and, if there is a `pattern`, matches it from its beginning.

    Named groups of the pattern are the values of the receipt; numbers become numbers.
    """

    start: str
    pattern: re.Pattern[str] | None = None
    phase: Phase | None = None
    receipt: str | None = None
    mark: LineMark | None = None
    engine: EngineName | None = None
    """The only engine that prints such a line; None if several do."""

    def is_match(self, text: str) -> bool:
        """Whether a text that begins with `start` also matches the pattern."""
        return self.pattern is None or self.pattern.match(text) is not None


@dataclass(frozen=True, slots=True)
class Cause:
    """A line that contains `needle` and matches `pattern` anywhere explains a failure."""

    reason: Reason
    needle: str
    pattern: re.Pattern[str]
    rank: Rank = Rank.SPECIFIC
    fatal: bool = True
    """The line itself means that the boot failed; otherwise it only explains a boot that fails."""
    lasting: bool = False
    """It counts even if the server starts."""
    refine: Callable[[Mapping[str, Value]], Reason] | None = None
    """Chooses the reason by the values of the match."""
    function: str | None = None
    """Counts only in a traceback through a function of this name."""


@dataclass(frozen=True)
class EngineLog:
    """How to read the log of one engine."""

    engine: EngineName
    signals: tuple[Signal, ...]
    """Lines that only this engine prints."""
    common_signals: tuple[Signal, ...]
    """Lines that other engines print as well, with another meaning."""
    causes: tuple[Cause, ...]
    package: str
    """A directory in the paths of its code, such as `/vllm/`: in the frames of its tracebacks."""
    usage_errors: tuple[str, ...]
    """How the last line of its parser's usage message begins."""
    default_port: int
    title: str
    """Its name in sentences."""
    advised_arguments: tuple[str, ...]
    """The arguments that advice may name, as its echo spells them."""
    advice: Mapping[Reason, tuple[str, ...]] = field(default_factory=dict)
    """Sentences in place of the general ones, or for reasons that have no general ones."""
    own_header: HeaderForm | None = None
    """The form of log header that no other program writes."""
    unlevelled_header: HeaderForm | None = None
    """The form of log header that has no level: a warning looks like any other line."""
    healthy_early: bool = False
    """Its server says that it is healthy before it is ready."""
    offload_argument: str | None = None
    """The argument for the GiB that the UVA backend offloads."""


# Logs are cut and damaged: text that is not a number of plausible length stays text.
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DECIMAL = re.compile(r"-?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})")


def number(text: str) -> Value:
    """`1,048,576` and `61.17` as numbers, anything else as it is."""
    plain = text.replace(",", "")
    if _WHOLE.fullmatch(plain):
        return int(plain)
    return float(plain) if _DECIMAL.fullmatch(plain) else text


def values_of(match: re.Match[str]) -> dict[str, Value]:
    """The named groups that took part in a match."""
    return {name: number(text) for name, text in match.groupdict().items() if text is not None}


def signal(
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
    function: str | None = None,
) -> Cause:
    """A row of a table of causes; without a pattern the needle is enough."""
    return Cause(reason, needle, re.compile(pattern or re.escape(needle)), rank, function=function)
