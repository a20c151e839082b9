"""`down`: stop the lane, wait for its end and check its residue; keep the container unless told to remove it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from gb300serve.core.errors import BackendError, MachineError
from gb300serve.core.ports import Clock
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.events import StepBegan
from gb300serve.lifecycle.failures import SIGKILLED
from gb300serve.lifecycle.launch import describe_container, is_failed, release_of
from gb300serve.lifecycle.ready import ContainerGoneError
from gb300serve.lifecycle.reconcile import is_live, stop_step
from gb300serve.lifecycle.steps import ApplyRestart, StopContainer
from gb300serve.lifecycle.tools import Tools

# The driver frees 250 GiB some seconds after the process ended.
FREE_TRIES = 120
FREE_EVERY = 0.25
# Files of vLLM's executor and of multiprocessing in /dev/shm: most stops with --ipc host leave some behind.
NAMES = ("psm_", "sem.mp-", "vllm", "sem.vllm")


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A compute process. `used` is nvidia-smi's text, such as `236544 MiB`."""

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


class ResidueProbe(Protocol):
    """Inspects the machine that runs the containers, if it is this one. None: unknown."""

    def gpu_processes(self) -> tuple[GpuProcess, ...] | None: ...

    def inside(self, container: str, pids: Iterable[int]) -> frozenset[int]:
        """The processes that belong to the container (by id)."""

    def shared(self) -> tuple[SharedFile, ...] | None: ...


@dataclass(frozen=True, slots=True)
class Residue:
    """What an ended engine left behind. `gpu_checked` is False if the GPU could not be inspected."""

    survivors: tuple[GpuProcess, ...] = ()
    shared: tuple[str, ...] = ()
    gpu_checked: bool = False


class ResidueWatcher:
    """Compares the machine before and after the container ends."""

    def __init__(self, container: Container, probe: ResidueProbe, clock: Clock) -> None:
        self._container = container
        self._probe = probe
        self._clock = clock
        found = probe.gpu_processes() if container.gpus else None
        self._checked = found is not None
        self._its = probe.inside(container.id, (process.pid for process in found or ()))

    def after(self) -> Residue:
        """Wait until the GPU memory of its processes is free, 30 s at most."""
        survivors = self._survivors()
        for _ in range(FREE_TRIES):
            if not survivors:
                break
            self._clock.sleep(FREE_EVERY)
            survivors = self._survivors()
        return Residue(survivors, self._shared(), self._checked)

    def _survivors(self) -> tuple[GpuProcess, ...]:
        if not self._its:
            return ()
        return tuple(process for process in self._probe.gpu_processes() or () if process.pid in self._its)

    def _shared(self) -> tuple[str, ...]:
        """Files of its kind made while it ran; an engine that started meanwhile makes such files too."""
        started = self._container.started_at
        if started is None:
            return ()
        files = (file for file in self._probe.shared() or () if file.name.startswith(NAMES))
        return tuple(file.name for file in files if file.made_at >= started)


SETTLE_TRIES = 50
SETTLE_EVERY = 0.2


class NotOursError(MachineError):
    """Only containers that gb300serve created are stopped or removed."""

    def __init__(self, container: Container) -> None:
        super().__init__(
            f"{describe_container(container)} was not created by gb300serve and is left alone",
            hint=f"docker stop {container.name}",
        )


class StillRunningError(BackendError):
    """Docker reported the stop, but still shows the container running."""

    def __init__(self, container: Container) -> None:
        super().__init__(
            f"{container.name} is still {container.state} after it was stopped and killed",
            hint=f"docker inspect {container.name}",
        )


@dataclass(frozen=True, slots=True)
class StopResult:
    """`container` is its state after the stop (before its removal)."""

    container: Container
    was_running: bool
    removed: bool
    residue: Residue = field(default_factory=Residue)

    @property
    def killed(self) -> bool:
        """It ignored the stop signal. Not a failure: vLLM ignores SIGTERM while it imports, and may hang later."""
        return self.was_running and self.container.exit_code == SIGKILLED


def down(
    chosen: Container,
    tools: Tools,
    *,
    remove: bool = False,
    timeout: float | None = None,
    probe: ResidueProbe | None = None,
) -> StopResult:
    """`timeout`: seconds before SIGKILL (else the container's own, else 30). Raises BackendError (7).

    With `probe`, wait until the GPU memory is free and report the residue.
    """
    container = tools.backend.find(chosen.id)
    if container is None:
        raise ContainerGoneError(chosen.name)
    if not container.ours:
        raise NotOursError(container)
    was_running = is_live(container)
    watcher = ResidueWatcher(container, probe, tools.clock) if probe and was_running else None
    remove_policy(container, tools)
    ended = _stopped(container, tools, timeout) if was_running else container
    residue = watcher.after() if watcher else Residue()
    if remove:
        tools.backend.remove(container.id)
    return StopResult(ended, was_running, removed=remove, residue=residue)


def remove_failed(like: Container, tools: Tools) -> tuple[str, ...]:
    """Remove the kept containers of failed boots of the same release; returns their names. Raises BackendError (7)."""
    failed = filter(is_failed, tools.backend.containers())
    ended = (container for container in failed if container.ours and not is_live(container))
    same = [container for container in ended if release_of(container) == release_of(like) and container.id != like.id]
    for container in same:
        tools.backend.remove(container.id)
    return tuple(container.name for container in same)


def remove_policy(container: Container, tools: Tools) -> None:
    """A policy such as `always` would restart it with the daemon, or at once if the engine dies first."""
    if container.restart_policy == "no":
        return
    tools.announce(StepBegan(ApplyRestart(container.id, container.name, "no", container.restart_policy)))
    tools.backend.set_restart(container.id, "no")


def stop(step: StopContainer, tools: Tools) -> None:
    """Announce the step, record it in the lock and carry it out."""
    tools.announce(StepBegan(step))
    tools.lock.stopping(step.container)
    tools.backend.stop(step.container, step.timeout)


def _stopped(container: Container, tools: Tools, timeout: float | None) -> Container:
    own = stop_step(container)
    stop(own if timeout is None else replace(own, timeout=timeout), tools)
    now = container
    for _ in range(SETTLE_TRIES):
        now = tools.backend.find(container.id) or now
        if not is_live(now):
            return now
        tools.clock.sleep(SETTLE_EVERY)
    raise StillRunningError(now)
