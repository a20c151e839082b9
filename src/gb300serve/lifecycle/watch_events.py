"""What the watch over a boot tells beside the boot machine's own events."""

from dataclasses import dataclass

from gb300serve.boot.outlook import Outlook
from gb300serve.boot.pulse import Judgement
from gb300serve.boot.receipts import CheckedReceipt


@dataclass(frozen=True, slots=True)
class Watching:
    """Told at every tick: how the boot goes on from here."""

    outlook: Outlook
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
