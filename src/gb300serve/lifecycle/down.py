"""`down`: ask the lane to end, wait, keep the container unless it is to be removed."""

from dataclasses import dataclass, field

from gb300serve.core.errors import BackendError, MachineError
from gb300serve.lifecycle.conflicts import live
from gb300serve.lifecycle.events import StepBegan
from gb300serve.lifecycle.failures import SIGKILLED
from gb300serve.lifecycle.leftovers import Leftovers, Remains, Watcher
from gb300serve.lifecycle.names import is_failed, ref_of, title
from gb300serve.lifecycle.ports import Container
from gb300serve.lifecycle.ready import ContainerGoneError
from gb300serve.lifecycle.reconcile import STOP_TIMEOUT
from gb300serve.lifecycle.steps import ApplyRestart, StopContainer
from gb300serve.lifecycle.tools import Tools

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
