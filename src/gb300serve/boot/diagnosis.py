"""The diagnosis of a log, and the object that `diagnose --json` prints."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from gb300serve.boot.events import ReceiptValue
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason

State: TypeAlias = Literal["ready", "booting", "tuning", "stalled", "failed", "stopped"]

SCHEMA = "gb300serve.diagnosis/1"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line of the log, counted as `grep -n` counts, and its text."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What became of a boot. `phases` are names and seconds in the order in which they came."""

    state: State
    phase: Phase
    reason: Reason | None = None
    values: Mapping[str, ReceiptValue] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[str, ...] = ()
    phases: tuple[tuple[Phase, float], ...] = ()
    boots: int = 0

    def as_json(self) -> dict[str, Any]:
        """The object `gb300serve.diagnosis/1`."""
        return {
            "schema": SCHEMA,
            "state": self.state,
            "phase": self.phase.value,
            "reason": self.reason.value if self.reason else None,
            "values": dict(self.values),
            "evidence": [{"line": item.line, "text": item.text} for item in self.evidence],
            "advice": list(self.advice),
            "phases": [{"name": phase.value, "seconds": round(seconds, 3)} for phase, seconds in self.phases],
            "boots": self.boots,
        }


def exit_code(diagnosis: Diagnosis) -> int:
    """8 for a boot that failed or stalled, 9 for one that serves wrongly, else 0."""
    if diagnosis.state in {"failed", "stalled"}:
        return 8
    return 9 if diagnosis.state == "ready" and diagnosis.reason else 0
