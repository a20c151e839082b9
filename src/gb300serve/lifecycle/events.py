"""Announcements of a launch, as values; the views turn them into text."""

from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, TypeAlias

from gb300serve.boot.events import Event, Progress
from gb300serve.boot.phases import Phase
from gb300serve.boot.progress import BootEstimate, Judgement
from gb300serve.boot.receipts import CheckedReceipt
from gb300serve.core.errors import Action
from gb300serve.core.values import Missing
from gb300serve.lifecycle.backend import LogLine
from gb300serve.lifecycle.steps import Step


@dataclass(frozen=True, slots=True)
class Watching:
    """Announced at every tick: the estimate for the rest of the boot."""

    outlook: BootEstimate
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class HealthChanged:
    """The health of the boot changed. `stack_command` prints the stack of a stuck engine."""

    judgement: Judgement
    waits_for: str
    at: float
    stack_command: str | None = None


@dataclass(frozen=True, slots=True)
class TuningForeseen:
    """Kernels are, or will be, tuned: `why`, what it costs, and what to do about it."""

    why: str
    price: str
    suggest: tuple[Action | str, ...]
    at: float


@dataclass(frozen=True, slots=True)
class StackTaken:
    """The stack of the engine from py-spy, once per time it becomes stuck."""

    text: str
    at: float


@dataclass(frozen=True, slots=True)
class ReceiptsChecked:
    """The receipts of a serving boot; `binding` is False if `--set` changed what they describe."""

    receipts: tuple[CheckedReceipt, ...]
    binding: bool


@dataclass(frozen=True, slots=True)
class StepBegan:
    """The step starts."""

    step: Step


@dataclass(frozen=True, slots=True)
class StepUndone:
    """The step was undone because a later one failed or was interrupted."""

    step: Step


@dataclass(frozen=True, slots=True)
class UndoFailed:
    """The step could not be undone; `reason` is a sentence."""

    step: Step
    reason: str


@dataclass(frozen=True, slots=True)
class SetAside:
    """The container of a failed boot was kept under another name for inspection."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class PutBack:
    """A replaced container runs again under its old name (and boots)."""

    name: str


@dataclass(frozen=True, slots=True)
class LogSeen:
    """A line of the container's log."""

    line: LogLine


@dataclass(frozen=True, slots=True)
class BootEvent:
    """An event of the boot machine; `expected` is the recipe's seconds for the phase."""

    event: Event
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Seconds since the container's start, in its own time."""

    phase: Phase | None
    seconds: float


@dataclass(frozen=True, slots=True)
class NotReady:
    """The engine logged that it started, but READY is not proved; announced once per `why`."""

    why: str


@dataclass(frozen=True, slots=True)
class BecameReady:
    """READY: `seconds` since the container's start; `identity_known` is False if the engine reports no start time."""

    name: str
    model: str
    seconds: float
    identity_known: bool


@dataclass(frozen=True, slots=True)
class SharedMemoryRead:
    """After READY: bytes of host memory that the engine has pinned, and the GiB that `fit` expects (None: unknown)."""

    held: int | Missing
    expected_gib: float | None

    @property
    def held_gib(self) -> float | None:
        return None if isinstance(self.held, Missing) else self.held / 2**30

    def describe(self) -> dict[str, Any]:
        """GiB; `missing` states why nothing was read."""
        figures = {"held_gib": self.held_gib, "expected_gib": self.expected_gib}
        rounded = {name: None if gib is None else round(gib, 2) for name, gib in figures.items()}
        return {**rounded, "missing": self.held.why if isinstance(self.held, Missing) else None}


Announcement: TypeAlias = (
    StepBegan
    | StepUndone
    | UndoFailed
    | SetAside
    | PutBack
    | LogSeen
    | BootEvent
    | Elapsed
    | NotReady
    | BecameReady
    | Watching
    | HealthChanged
    | TuningForeseen
    | StackTaken
    | ReceiptsChecked
    | SharedMemoryRead
)

# Announced at every tick; their consequences are announced on their own.
_UNREMARKABLE = (Elapsed, Watching, Progress)


def describe(announcement: Announcement) -> dict[str, Any] | None:
    """The announcement as JSON types, its `kind` first; None for what is announced at every tick."""
    event = announcement.event if isinstance(announcement, BootEvent) else announcement
    return None if isinstance(event, _UNREMARKABLE) else {"kind": type(event).__name__, **plain(event)}


def plain(value: Any) -> Any:
    """A value of an announcement as JSON types."""
    describe = getattr(value, "describe", None)
    if callable(describe):
        return describe()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return {str(key): plain(item) for key, item in value.items()} if isinstance(value, dict) else value
