"""`down`: stop a lane under the lock, and record it in the journal."""

from collections.abc import Callable
from dataclasses import dataclass

from gb300serve.adapters.system import once
from gb300serve.app.hosts import ContainerHost
from gb300serve.app.launch_journal import LaunchJournal, locked
from gb300serve.app.state import StateDirectory
from gb300serve.app.workspace import Workspace
from gb300serve.core.errors import Action, Gb300Error
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.down import StopResult, down, remove_failed
from gb300serve.lifecycle.events import Announcement, StepBegan
from gb300serve.lifecycle.launch import ref_of, release_of
from gb300serve.lifecycle.steps import Step, StopContainer
from gb300serve.lifecycle.tools import Tools


class DownInterruptedError(Gb300Error):
    """Ctrl-C or SIGTERM before the lane had ended."""

    exit_code = 130

    def __init__(self, message: str, container: Container) -> None:
        wait = Action("down", "wait for its end", ref=ref_of(container))
        super().__init__(f"interrupted; {message}", suggest=(Action("status", "see what runs", ref=""), wait))


@dataclass(frozen=True, slots=True)
class DownRequest:
    """The container to stop, and how. `remove_failed`: also remove the containers of failed boots."""

    container: Container
    command: str
    remove: bool = False
    remove_failed: bool = False
    timeout: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LaneStopped:
    """What `down` did. `failed`: names of removed containers of failed boots."""

    done: StopResult
    failed: tuple[str, ...]


def stop_lane(
    request: DownRequest,
    host: ContainerHost,
    state: StateDirectory,
    workspace: Workspace,
    show: Callable[[Announcement], None],
) -> LaneStopped:
    """Raises DownInterruptedError (130), BackendError (7), MachineError (6) while another command holds the lock."""
    container, console = request.container, workspace.console
    with once(), locked(state.lock(host.on, request.command), state, console) as lock:
        journal = LaunchJournal(state, host, console, workspace.station, "down")
        journal.settle()
        begun: list[Step] = []

        def announce(announcement: Announcement) -> None:
            if isinstance(announcement, StepBegan):
                begun.append(announcement.step)
            show(announcement)

        tools = host.tools(announce, lock)
        try:
            done = down(container, tools, remove=request.remove, timeout=request.timeout, probe=host.residue)
        except KeyboardInterrupt:
            with tools.uninterrupted():
                raise _interrupted(request, begun, tools, journal) from None
        failed = tuple(remove_failed(container, tools)) if request.remove_failed else ()
        if done.was_running or done.removed:
            text = "; ".join((f"{release_of(done.container)}: {sentence(done)}", *map(removed_too, failed)))
            journal.enter("removed" if done.removed else "stopped", text, reason=request.reason)
    return LaneStopped(done, failed)


def sentence(done: StopResult) -> str:
    """How the container ended."""
    name = done.container.name
    if not done.was_running:
        return f"{name} was not running" + ("; removed" if done.removed else "")
    ended = f"ended with exit code {done.container.exit_code}"
    how = "was killed: it ignored the stop signal" if done.killed else ended
    return f"{name} {how}; {'removed' if done.removed else 'kept'}"


def removed_too(name: str) -> str:
    """A removed container of a failed boot."""
    return f"{name} (kept after a failed boot) was removed too"


def _interrupted(request: DownRequest, begun: list[Step], tools: Tools, journal: LaunchJournal) -> DownInterruptedError:
    """A requested stop cannot be taken back; before it, the restart policy is restored."""
    container = request.container
    if any(isinstance(step, StopContainer) for step in begun):
        message = f"{container.name} received the stop signal, but down did not wait for its end"
        text = f"{release_of(container)}: {message}"
        journal.enter("interrupted", text, reason=request.reason, stopping=container.id)
        return DownInterruptedError(message, container)
    if begun:
        tools.backend.set_restart(container.id, container.restart_policy)
    return DownInterruptedError(f"{container.name} is unchanged", container)
