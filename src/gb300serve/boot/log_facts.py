"""The facts of a boot that its log prints: the arguments, the receipts, the result of the tuning cache."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gb300serve.boot.events import BootBegan, Event, Receipt, ReceiptValue, TuningMiss
from gb300serve.boot.lines import parse

Outcome = Literal["hit", "partial", "miss"]


@dataclass(frozen=True, slots=True)
class TuningOutcome:
    """The result of the kernel-tuning cache.

    `partial`: some kernels were loaded and others tuned. `loaded` and `new` are counts, None if the log has none.
    """

    outcome: Outcome
    loaded: int | None = None
    new: int | None = None
    path: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The value of `tuning` in `diagnose --json`."""
        return {"cache": self.outcome, "loaded": self.loaded, "new": self.new, "path": self.path}

    def sentence(self) -> str:
        """Such as `tuning cache: hit, 210 configurations loaded`."""
        parts = [f"tuning cache: {self.outcome}"]
        parts += [] if self.loaded is None else [f"{self.loaded} configurations loaded"]
        if self.outcome != "hit":
            parts += ["kernels are being tuned" if self.new is None else f"{self.new} tuned"]
        return ", ".join(parts)


@dataclass(slots=True)
class LogFacts:
    """The facts of the last boot in a log, from each line and the boot machine's events for it."""

    prefix: str
    """The beginning of the line with the engine's arguments (ArgumentEcho.prefix)."""
    echo: str = ""
    """The text of that line, or ""."""
    receipts: dict[str, Mapping[str, ReceiptValue]] = field(default_factory=dict)
    missed: bool = False

    def take(self, line: str, events: Iterable[Event]) -> None:
        """Add a line; another boot begins anew."""
        for event in events:
            match event:
                case BootBegan():
                    self.echo, self.receipts, self.missed = "", {}, False
                case Receipt(name, values):
                    self.receipts[name] = values
                case TuningMiss():
                    self.missed = True
                case _:
                    pass
        if self.prefix in line:
            self.echo = next((text for piece in line.split("\r") if self.prefix in (text := parse(piece).text)), "")

    def figure(self, receipt: str, key: str) -> Any:
        """One value of a receipt; None if the log has none."""
        return self.receipts.get(receipt, {}).get(key)

    def number(self, receipt: str, key: str) -> int | float | None:
        """The same as a number; None also for the text of a damaged line."""
        value = self.receipts.get(receipt, {}).get(key)
        return None if isinstance(value, str) else value

    @property
    def tuning(self) -> TuningOutcome | None:
        """None if the boot ended before it, or printed nothing about it."""
        loaded, new = self._count("tuning_loaded", "configs"), self._count("tuning_saved", "new")
        path = self.figure("tuning_cache", "path") or self.figure("tuning_loaded", "path")
        ignored = "tuning_cache_ignored" in self.receipts
        if self.missed or new or ignored:
            return TuningOutcome("partial" if loaded and not ignored else "miss", loaded, new, path)
        return TuningOutcome("hit", loaded, new, path) if loaded else None

    def _count(self, receipt: str, key: str) -> int | None:
        value = self.number(receipt, key)
        return value if isinstance(value, int) else None
