"""The ports that acting on a lane needs: built by the application, faked by tests."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from gb300serve.boot.machine import BootMachine
from gb300serve.core.ports import Clock, Http
from gb300serve.engines.logs import boot_machine
from gb300serve.lifecycle.backend import ContainerBackend, GpuMemory, Listeners
from gb300serve.lifecycle.events import Announcement


class Lock(Protocol):
    """One command at a time changes containers (journal.lock implements it)."""

    def acquire(self, patience: float) -> None:
        """No effect if held already. Raises MachineError if another command holds it for `patience` seconds."""

    def release(self) -> None: ...

    def stopping(self, container: str) -> None:
        """Record that this command stops the container (by id)."""

    def stopped_by(self, container: str) -> str | None:
        """The other command that stopped the container since this one began."""


class NoLock:
    """For callers that need no lock."""

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
    """`machine` makes a new boot machine for every log that is read from its start.

    `lock` is held while containers are changed. Within `uninterrupted`, Ctrl-C has no effect: cleanup finishes.
    """

    backend: ContainerBackend
    http: Http
    clock: Clock
    announce: Callable[[Announcement], None] = lambda _: None
    machine: Callable[[], BootMachine] = boot_machine
    lock: Lock = field(default_factory=NoLock)
    uninterrupted: Callable[[], AbstractContextManager[None]] = nullcontext
    listeners: Listeners | None = None
    gpu: GpuMemory | None = None
    """None if it cannot be inspected from here."""
