"""What a line or a tick of the clock can mean. `at` is seconds since the start of the boot."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gb300serve.boot.phases import Phase

ReceiptValue: TypeAlias = "int | float | str"


@dataclass(frozen=True, slots=True)
class BootBegan:
    """A boot begins; the first one in a log has number 1."""

    number: int


@dataclass(frozen=True, slots=True)
class PhaseEntered:
    """The boot has come to `phase`."""

    phase: Phase
    at: float


@dataclass(frozen=True, slots=True)
class Progress:
    """A progress bar has moved: `done` of `total` (shards, graphs, profiles)."""

    phase: Phase
    text: str
    done: int
    total: int
    at: float


@dataclass(frozen=True, slots=True)
class Receipt:
    """A line that states a figure of the boot; README lists the names and the keys of `values`."""

    name: str
    values: Mapping[str, ReceiptValue]
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class TuningHit:
    """The tuning cache was loaded: `configs` kernels need no tuning."""

    configs: int
    at: float


@dataclass(frozen=True, slots=True)
class TuningMiss:
    """Kernels are being tuned although the boot could have loaded them; `configs` were loaded (0: nothing fits)."""

    configs: int
    at: float


@dataclass(frozen=True, slots=True)
class StartupComplete:
    """The server says that it started. Not READY: it may not listen, or another server may hold its port."""

    at: float


@dataclass(frozen=True, slots=True)
class CauseFound:
    """A line names why the boot fails (or why it will serve wrongly); a later one may name it better."""

    reason: str
    values: Mapping[str, ReceiptValue]
    line_number: int
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class Stopped:
    """The engine was asked to end and ends."""

    at: float


@dataclass(frozen=True, slots=True)
class Stalled:
    """No progress for `silent` seconds, more than the phase's patience."""

    phase: Phase
    silent: float
    at: float


Event: TypeAlias = (
    BootBegan
    | PhaseEntered
    | Progress
    | Receipt
    | TuningHit
    | TuningMiss
    | StartupComplete
    | CauseFound
    | Stopped
    | Stalled
)
