"""A boot's log as it is read everywhere: the boot machine, what else the log told, and advice with numbers."""

from dataclasses import dataclass, field, replace

from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.boot.events import Event
from gb300serve.boot.heard import LogFacts
from gb300serve.boot.machine import BootMachine
from gb300serve.fit.remedy import remedies


@dataclass(slots=True)
class Reading:
    """One log, from its first line on. The machine may be given ticks and glimpses beside it."""

    machine: BootMachine = field(default_factory=BootMachine)
    heard: LogFacts = field(default_factory=LogFacts)

    def feed(self, line: str, at: float | None = None) -> tuple[Event, ...]:
        """A line as it came; `at` is seconds since the start of the container."""
        events = self.machine.feed(line, at)
        self.heard.take(line, events)
        return events

    def result(self) -> Diagnosis:
        """What became of the boot, with the nearest settings that fit where memory failed it."""
        found = self.machine.result()
        return replace(found, advice=(*found.advice, *remedies(found, self.heard)))
