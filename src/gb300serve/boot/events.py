"""The events of a boot. `at` is seconds since the start of the boot."""

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
    """The boot entered `phase`."""

    phase: Phase
    at: float


@dataclass(frozen=True, slots=True)
class Progress:
    """A progress bar moved: `done` of `total` (shards, graphs, profiles)."""

    phase: Phase
    text: str
    done: int
    total: int
    at: float


@dataclass(frozen=True, slots=True)
class Receipt:
    """A line with figures of the boot. `gb300serve help boot-logs` lists the names and the keys of `values`."""

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
    """Kernels are being tuned; `configs` of them were loaded before (0: no saved set fits)."""

    configs: int
    at: float


@dataclass(frozen=True, slots=True)
class StartupComplete:
    """The server reports that it started. Not READY: it may not listen, or another server may hold its port."""

    at: float


@dataclass(frozen=True, slots=True)
class CauseFound:
    """A line explains why the boot fails, or why it will not serve as described; a later line may explain it better."""

    reason: str
    values: Mapping[str, ReceiptValue]
    line_number: int
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class Stopped:
    """The engine received the stop signal and is stopping."""

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
