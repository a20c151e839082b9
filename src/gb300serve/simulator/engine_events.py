"""What a boot does, as data: a script is a sequence of these, `at` in virtual seconds since the process started."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class Say:
    """Write `text` as it is: a line ends in a line feed, an update of a bar begins with a carriage return."""

    at: float
    stream: Stream
    text: str


@dataclass(frozen=True, slots=True)
class Enter:
    """A phase of the boot begins; nothing is written."""

    at: float
    phase: str


@dataclass(frozen=True, slots=True)
class Bind:
    """Take the port, without listening."""

    at: float


@dataclass(frozen=True, slots=True)
class Save:
    """Write the tuning cache: `configs` kernels under `path` below the cache root."""

    at: float
    path: str
    configs: int


@dataclass(frozen=True, slots=True)
class Serve:
    """Listen, and answer until told to end."""

    at: float


@dataclass(frozen=True, slots=True)
class Repeat:
    """Say the same every `every` virtual seconds, for ever; `{stamp}` in it is the time."""

    at: float
    every: float
    stream: Stream
    text: str


@dataclass(frozen=True, slots=True)
class Exit:
    """End with this code; 137 is the kernel's kill, without a word."""

    at: float
    code: int


Event: TypeAlias = Say | Enter | Bind | Save | Serve | Repeat | Exit
Script: TypeAlias = tuple[Event, ...]
