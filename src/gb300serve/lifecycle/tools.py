"""What acting on a lane needs from outside, in one parcel: built by the command line, faked by tests."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from gb300serve.boot.machine import BootMachine
from gb300serve.core.ports import Clock, Http
from gb300serve.engines.logs import boot_machine
from gb300serve.lifecycle.backend import ContainerBackend, GpuMemory, Listeners
from gb300serve.lifecycle.events import Announcement


def unheard(announcement: Announcement) -> None:
    """For callers that only want the result."""
    del announcement


class Lock(Protocol):
    """One command at a time changes what serves (journal.lane_lock is one)."""

    def acquire(self, patience: float) -> None:
        """Nothing where it is held already. Raises MachineError where another command keeps it `patience` seconds."""

    def release(self) -> None: ...

    def stopping(self, container: str) -> None:
        """This command stops the container (by id)."""

    def stopped_by(self, container: str) -> str | None:
        """Which other command has stopped the container since this one began."""


class NoLock:
    """For callers that are alone."""

    def acquire(self, patience: float) -> None:
        del patience

    def release(self) -> None:
        return

    def stopping(self, container: str) -> None:
        del container

    def stopped_by(self, container: str) -> str | None:
        del container
        return None


@dataclass(frozen=True, slots=True)
class Tools:
    """`machine` makes a fresh boot machine: one for every log that is read from its start.

    `lock` is held while containers are changed. Within `uninterrupted` Ctrl-C does nothing: things are put in order.
    """

    backend: ContainerBackend
    http: Http
    clock: Clock
    announce: Callable[[Announcement], None] = unheard
    machine: Callable[[], BootMachine] = boot_machine
    lock: Lock = field(default_factory=NoLock)
    uninterrupted: Callable[[], AbstractContextManager[None]] = nullcontext
    listeners: Listeners | None = None
    gpu: GpuMemory | None = None
    """None where it cannot be looked at."""
