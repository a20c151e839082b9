"""What an engine may leave behind when it ends: processes on the GPU, and shared memory on the host."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from gb300serve.core.clock import Clock
from gb300serve.lifecycle.ports import Container

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
