"""`down`: ask the lane to end, wait, keep the container unless it is to be removed."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from gb300serve.core.errors import BackendError, MachineError
from gb300serve.core.ports import Clock
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.events import StepBegan
from gb300serve.lifecycle.failures import SIGKILLED
from gb300serve.lifecycle.launch import is_failed, ref_of, title
from gb300serve.lifecycle.ready import ContainerGoneError
from gb300serve.lifecycle.reconcile import STOP_TIMEOUT, live
from gb300serve.lifecycle.steps import ApplyRestart, StopContainer
from gb300serve.lifecycle.tools import Tools

# Freeing 250 GiB takes the driver some seconds after the process has gone.
FREE_TRIES = 120
FREE_EVERY = 0.25
# What vLLM's executor and Python's multiprocessing make in /dev/shm: seen left behind by most stops with --ipc host.
NAMES = ("psm_", "sem.mp-", "vllm", "sem.vllm")


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A compute process. `used` is as the driver's tool prints it, such as `236544 MiB`."""

    pid: int
    name: str
    used: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.name}) holds {self.used}"


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file in /dev/shm, made at `made_at`, seconds since 1970."""

    name: str
    made_at: float


class Remains(Protocol):
    """The machine that runs the containers, where it is this one. None: it cannot be told."""

    def gpu_processes(self) -> tuple[GpuProcess, ...] | None: ...

    def inside(self, container: str, pids: Iterable[int]) -> frozenset[int]:
        """Those of the processes that belong to the container (by id)."""

    def shared(self) -> tuple[SharedFile, ...] | None: ...


@dataclass(frozen=True, slots=True)
class Leftovers:
    """`gpu_checked` is False where nobody could tell."""

    survivors: tuple[GpuProcess, ...] = ()
    shared: tuple[str, ...] = ()
    gpu_checked: bool = False


class Watcher:
    """Looks before the container ends, and again afterwards."""

    def __init__(self, container: Container, remains: Remains, clock: Clock) -> None:
        self._container = container
        self._remains = remains
        self._clock = clock
        found = remains.gpu_processes() if container.gpus else None
        self._checked = found is not None
        self._its = remains.inside(container.id, (each.pid for each in found or ()))

    def after(self) -> Leftovers:
        """Waits until the memory of its processes is free, half a minute at most."""
        survivors = self._survivors()
        for _ in range(FREE_TRIES):
            if not survivors:
                break
            self._clock.sleep(FREE_EVERY)
            survivors = self._survivors()
        return Leftovers(survivors, self._shared(), self._checked)

    def _survivors(self) -> tuple[GpuProcess, ...]:
        if not self._its:
            return ()
        return tuple(each for each in self._remains.gpu_processes() or () if each.pid in self._its)

    def _shared(self) -> tuple[str, ...]:
        """By name and age: those that were made while it ran. Another engine that started meanwhile makes such too."""
        started = self._container.started_at
        if started is None:
            return ()
        found = self._remains.shared() or ()
        return tuple(each.name for each in found if each.name.startswith(NAMES) and each.made_at >= started)


SETTLE_TRIES = 50
SETTLE_EVERY = 0.2


class NotOursError(MachineError):
    """Stopping and removing are for what gb300serve created."""

    def __init__(self, container: Container) -> None:
        super().__init__(
            f"{title(container)} was not created by gb300serve; it is left alone",
            hint=f"docker stop {container.name}",
        )


class StillRunningError(BackendError):
    """The engine of containers said that it stopped it, and shows it running."""

    def __init__(self, container: Container) -> None:
        super().__init__(
            f"{container.name} is still {container.state} after it was stopped and killed",
            hint=f"docker inspect {container.name}",
        )


@dataclass(frozen=True, slots=True)
class Downed:
    """`container` is as it stands now (as it stood before it was removed)."""

    container: Container
    was_running: bool
    removed: bool
    leftovers: Leftovers = field(default_factory=Leftovers)

    @property
    def killed(self) -> bool:
        """It did not answer the signal in time. No failure: vLLM ignores it while it imports and may hang after."""
        return self.was_running and self.container.exit_code == SIGKILLED


def down(
    chosen: Container,
    tools: Tools,
    *,
    remove: bool = False,
    timeout: float | None = None,
    remains: Remains | None = None,
) -> Downed:
    """`timeout` is seconds before it is killed (else the container's own, else 30). Raises BackendError (7).

    With `remains` it waits until the GPU's memory is free, and tells what is left.
    """
    container = tools.backend.find(chosen.id)
    if container is None:
        raise ContainerGoneError(chosen.name)
    if not container.ours:
        raise NotOursError(container)
    was_running = live(container)
    watcher = Watcher(container, remains, tools.clock) if remains and was_running else None
    _without_policy(container, tools)
    ended = _stopped(container, tools, timeout) if was_running else container
    leftovers = watcher.after() if watcher else Leftovers()
    if remove:
        tools.backend.remove(container.id)
    return Downed(ended, was_running, removed=remove, leftovers=leftovers)


def remove_failed(like: Container, tools: Tools) -> tuple[str, ...]:
    """Remove what was set aside of the same release after failed boots; their names. Raises BackendError (7)."""
    found = [
        each
        for each in tools.backend.containers()
        if each.ours and is_failed(each) and not live(each) and ref_of(each) == ref_of(like) and each.id != like.id
    ]
    for each in found:
        tools.backend.remove(each.id)
    return tuple(each.name for each in found)


def _without_policy(container: Container, tools: Tools) -> None:
    """A policy such as `always` would bring it back with the daemon, or at once when the engine dies first."""
    if container.restart_policy == "no":
        return
    tools.announce(StepBegan(ApplyRestart(container.id, container.name, "no", container.restart_policy)))
    tools.backend.set_restart(container.id, "no")


def _stopped(container: Container, tools: Tools, timeout: float | None) -> Container:
    own = STOP_TIMEOUT if container.stop_timeout is None else float(container.stop_timeout)
    patience = own if timeout is None else timeout
    tools.announce(StepBegan(StopContainer(container.id, container.name, patience)))
    tools.lock.stopping(container.id)
    tools.backend.stop(container.id, patience)
    now = container
    for _ in range(SETTLE_TRIES):
        now = tools.backend.find(container.id) or now
        if not live(now):
            return now
        tools.clock.sleep(SETTLE_EVERY)
    raise StillRunningError(now)
