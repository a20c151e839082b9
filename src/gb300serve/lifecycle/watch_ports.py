"""What some backends can tell of a running container beyond its log. Each is asked for where it is there."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Vitals:
    """`cpu_seconds` of the whole container since its start, in its own time; `gpu` 0 to 1; None: nobody can tell."""

    cpu_seconds: float | None = None
    gpu: float | None = None
    restarts: int = 0


@runtime_checkable
class TellsVitals(Protocol):
    """Raises BackendError."""

    def vitals(self, container: str) -> Vitals: ...


@runtime_checkable
class KnowsProcesses(Protocol):
    """Raises BackendError."""

    def processes(self, container: str) -> frozenset[int]:
        """The process ids of a running container, as its host numbers them."""


class Bars(Protocol):
    """Progress bars as they are drawn, before the log has them."""

    def fresh(self) -> tuple[str, ...]:
        """The newest state of each bar that moved since the last call; never waits."""


@runtime_checkable
class ShowsBars(Protocol):
    """A backend whose log has a bar only when it is full, and that can show it live beside the log."""

    def bars(self, container: str) -> AbstractContextManager[Bars]: ...


@runtime_checkable
class DumpsStacks(Protocol):
    """Where the engine stands, from outside. Raises BackendError."""

    def stack_command(self, container: str) -> str:
        """A command for a person's shell."""

    def stacks(self, container: str) -> str | None:
        """What py-spy says of every process; None where it cannot be had."""
