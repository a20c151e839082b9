"""What a launch tells while it goes on, as values; the command line finds the words."""

from dataclasses import dataclass
from typing import TypeAlias

from gb300serve.boot.events import Event
from gb300serve.boot.liveness import Judgement
from gb300serve.boot.phases import Phase
from gb300serve.boot.progress import BootEstimate
from gb300serve.boot.receipts import CheckedReceipt
from gb300serve.lifecycle.backend import LogLine
from gb300serve.lifecycle.steps import Step


@dataclass(frozen=True, slots=True)
class Watching:
    """Told at every tick: how the boot goes on from here."""

    outlook: BootEstimate
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class HealthChanged:
    """The boot is judged otherwise than before. `stack_command` shows where a stuck one stands."""

    judgement: Judgement
    waits_for: str
    at: float
    stack_command: str | None = None


@dataclass(frozen=True, slots=True)
class TuningForeseen:
    """Kernels are, or will be, tuned: `why`, what it costs, and the ways out, each a sentence."""

    why: str
    price: str
    ways_out: tuple[str, ...]
    at: float


@dataclass(frozen=True, slots=True)
class StackTaken:
    """Where the engine stands, as py-spy said; told once for each time that it is called stuck."""

    text: str
    at: float


@dataclass(frozen=True, slots=True)
class ReceiptsChecked:
    """The receipts of a boot that serves; `binding` is False where `--set` changed what they speak of."""

    receipts: tuple[CheckedReceipt, ...]
    binding: bool


@dataclass(frozen=True, slots=True)
class StepBegan:
    """The step is being carried out."""

    step: Step


@dataclass(frozen=True, slots=True)
class StepUndone:
    """The step was taken back, because a later one failed or was interrupted."""

    step: Step


@dataclass(frozen=True, slots=True)
class UndoFailed:
    """The step could not be taken back; `reason` is a sentence."""

    step: Step
    reason: str


@dataclass(frozen=True, slots=True)
class SetAside:
    """The container whose boot failed was kept under another name, for inspection."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class PutBack:
    """What a replacement had stopped runs again under its old name (and boots)."""

    name: str


@dataclass(frozen=True, slots=True)
class LogSeen:
    """A line of the container's log."""

    line: LogLine


@dataclass(frozen=True, slots=True)
class BootEvent:
    """What the boot machine made of a line or a tick; `expected` is seconds for the phase, where the recipe says it."""

    event: Event
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class Elapsed:
    """The watch goes on: seconds since the container's start, in its own time."""

    phase: Phase | None
    seconds: float


@dataclass(frozen=True, slots=True)
class NotReady:
    """The engine says that it started, but the proof is not complete; told once for each `why`."""

    why: str


@dataclass(frozen=True, slots=True)
class BecameReady:
    """READY: `seconds` since the container's start; `identity_known` is False where the engine has no start time."""

    name: str
    model: str
    seconds: float
    identity_known: bool


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
)
