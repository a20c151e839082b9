"""What acting on a lane needs from outside, in one parcel: built by the command line, faked by tests."""

from collections.abc import Callable
from dataclasses import dataclass

from gb300serve.boot.machine import BootMachine
from gb300serve.core.clock import Clock
from gb300serve.core.http import Http
from gb300serve.lifecycle.events import Announcement
from gb300serve.lifecycle.ports import ContainerBackend


def unheard(announcement: Announcement) -> None:
    """For callers that only want the result."""
    del announcement


@dataclass(frozen=True, slots=True)
class Tools:
    """`machine` makes a fresh boot machine: one for every log that is read from its start."""

    backend: ContainerBackend
    http: Http
    clock: Clock
    announce: Callable[[Announcement], None] = unheard
    machine: Callable[[], BootMachine] = BootMachine
