"""The seed that SGLang draws at each start and echoes among its arguments: no other start has it.

It is no receipt: the line that holds it is 10 kB long, and holds the server's key as well.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gb300serve.boot.events import BootBegan, Event, Receipt, ReceiptValue, TuningMiss
from gb300serve.boot.lines import parse

ECHO = "non-default args:"

Outcome = Literal["hit", "partial", "miss"]


@dataclass(frozen=True, slots=True)
class TuningOutcome:
    """What the boot did with its kernel-tuning cache.

    `partial`: some kernels were loaded and others tuned. `loaded` and `new` are counts, None where the log has none.
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
    """Of the last boot in a log; fed with each line and the events that the machine made of it."""

    echo: str = ""
    """The text of the line with the engine's arguments, or ""."""
    receipts: dict[str, Mapping[str, ReceiptValue]] = field(default_factory=dict)
    missed: bool = False

    def take(self, line: str, events: Iterable[Event]) -> None:
        """Remember what is worth it; another boot begins anew."""
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
        if ECHO in line:
            self.echo = next((text for piece in line.split("\r") if ECHO in (text := parse(piece).text)), "")

    def figure(self, receipt: str, key: str) -> Any:
        """One value of a receipt; None where the log has none."""
        return self.receipts.get(receipt, {}).get(key)

    def number(self, receipt: str, key: str) -> int | float | None:
        """The same, None too where a damaged line has something else in its place."""
        value = self.receipts.get(receipt, {}).get(key)
        return None if isinstance(value, str) else value

    @property
    def tuning(self) -> TuningOutcome | None:
        """None where the boot did not come so far, or says nothing of it."""
        loaded, new = self._count("tuning_loaded", "configs"), self._count("tuning_saved", "new")
        path = self.figure("tuning_cache", "path") or self.figure("tuning_loaded", "path")
        ignored = "tuning_cache_ignored" in self.receipts
        if self.missed or new or ignored:
            return TuningOutcome("partial" if loaded and not ignored else "miss", loaded, new, path)
        return TuningOutcome("hit", loaded, new, path) if loaded else None

    def _count(self, receipt: str, key: str) -> int | None:
        value = self.number(receipt, key)
        return value if isinstance(value, int) else None


_SEED = re.compile(r"\bserver_args=.*?\brandom_seed'?[:=] ?(\d{1,18})\b")


def seed_in(text: str) -> int | None:
    """Of a line of the log; None where it is another line."""
    match = _SEED.search(text) if "server_args=" in text else None
    return int(match[1]) if match else None
