"""Carry out the steps, and undo them in reverse if one fails or is interrupted."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import assert_never

from gb300serve.core.errors import BackendError, Gb300Error, MachineError
from gb300serve.lifecycle.backend import LABEL_PLAN, Container
from gb300serve.lifecycle.events import PutBack, SetAside, StepBegan, StepUndone, UndoFailed
from gb300serve.lifecycle.failures import (
    STOPPED,
    BootFailedError,
    BootTimedOutError,
    Ending,
    LaunchInterruptedError,
    LaunchOvertakenError,
    WrongServerError,
)
from gb300serve.lifecycle.launch import Launch, failed_name
from gb300serve.lifecycle.ready import ContainerGoneError, Served, await_ready
from gb300serve.lifecycle.reconcile import STOP_TIMEOUT, find_remaining, is_live
from gb300serve.lifecycle.steps import (
    ApplyRestart,
    AwaitReady,
    CreateContainer,
    RenameContainer,
    StartContainer,
    Step,
    StopContainer,
)
from gb300serve.lifecycle.tools import Tools


def set_aside(container: str, name: str, tools: Tools) -> str | None:
    """Stop a failed container and keep it as `NAME-failed-<UTC>`; None if it is gone or cannot be renamed."""
    found = find_remaining(tools.backend, container)
    if found is None:
        return None
    after = failed_name(name, tools.clock.now())
    try:
        _quiet(found, tools)
        tools.backend.rename(found.id, after)
    except BackendError as error:
        tools.announce(UndoFailed(RenameContainer(found.id, found.name, after), error.message))
        return None
    tools.announce(SetAside(found.name, after))
    return after


def end(container: str, tools: Tools) -> str | None:
    """Stop a failed container under its own name; returns the name, None if it is gone or does not stop."""
    found = find_remaining(tools.backend, container)
    if found is None:
        return None
    try:
        _quiet(found, tools)
    except BackendError as error:
        tools.announce(UndoFailed(StopContainer(found.id, found.name, STOP_TIMEOUT), error.message))
        return None
    return found.name


def _quiet(found: Container, tools: Tools) -> None:
    """Remove the restart policy first: it would start the container again."""
    if found.restart_policy != "no":
        tools.backend.set_restart(found.id, "no")
    if is_live(found):
        tools.backend.stop(found.id, STOP_TIMEOUT)


def undo(steps: tuple[Step, ...], tools: Tools, doubtful: Step | None = None) -> tuple[str, ...]:
    """Undo `steps`, the last one first. `doubtful` was interrupted: it may or may not have taken effect.

    A step that cannot be undone is announced and does not stop the others. Returns the names that run again.
    """
    running: list[str] = []
    for step in reversed(steps):
        try:
            if _take_back(step, tools, certain=step is not doubtful):
                tools.announce(StepUndone(step))
                if isinstance(step, StopContainer):
                    running.append(step.name)
                    tools.announce(PutBack(step.name))
        except BackendError as error:
            tools.announce(UndoFailed(step, error.message))
    return tuple(running)


def _take_back(step: Step, tools: Tools, *, certain: bool) -> bool:
    found = tools.backend.find(step.plan.container.name if isinstance(step, CreateContainer) else step.container)
    if found is None:
        return False
    match step:
        case CreateContainer():
            changed = _uncreate(step, found, tools)
        case StartContainer():
            changed = is_live(found)
            if changed:
                tools.backend.stop(found.id, STOP_TIMEOUT)
        case StopContainer():
            changed = _unstop(step, found, tools, certain=certain)
        case RenameContainer():
            changed = found.name != step.before
            if changed:
                tools.backend.rename(found.id, step.before)
        case ApplyRestart():
            tools.backend.set_restart(found.id, step.before)
            changed = True
        case AwaitReady():
            changed = False
        case _:
            assert_never(step)
    return changed


def _uncreate(step: CreateContainer, found: Container, tools: Tools) -> bool:
    """Remove a container of this launch that never ran; any other is kept with its log."""
    if found.labels.get(LABEL_PLAN) != step.labels[LABEL_PLAN]:
        return False
    if found.state == "created":
        tools.backend.remove(found.id)
        return True
    return set_aside(found.id, found.name, tools) is not None


def _unstop(step: StopContainer, found: Container, tools: Tools, *, certain: bool) -> bool:
    """An interrupted stop continues in Docker: it must end before the container can start again."""
    if is_live(found) and certain:
        return False
    if is_live(found):
        tools.backend.stop(found.id, step.timeout)
    tools.backend.start(found.id)
    return True


# Another command may run while a boot is watched; it stops at most one container (30 s) and starts one.
LOCK_PATIENCE = 180.0


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """`served` is None if READY was not awaited."""

    container: Container
    served: Served | None


def execute(steps: tuple[Step, ...], launch: Launch, tools: Tools, *, names_back: bool = False) -> LaunchResult:
    """Carry out the steps in order. A failed boot is kept under another name, and the replaced lane is restored.

    With `names_back`, a kept container that fails gets its kept name back. Raises BootError (8), BackendError (7),
    LaunchInterruptedError (130).
    """
    return _Execution(launch, tools, names_back=names_back).run(steps)


@dataclass
class _Execution:
    launch: Launch
    tools: Tools
    names_back: bool
    done: list[Step] = field(default_factory=list)
    watched: str = ""
    """The id of the container whose boot is watched."""

    def run(self, steps: tuple[Step, ...]) -> LaunchResult:
        served: Served | None = None
        for step in steps:
            begun: Step | None = None
            try:
                self.tools.announce(StepBegan(step))
                begun = step
                served = self._carry_out(step) or served
            except KeyboardInterrupt:
                with self.tools.uninterrupted():
                    raise self._interrupted(begun) from None
            except Gb300Error as error:
                with self.tools.uninterrupted():
                    raise self._failed(error, step) from error.__cause__
            self.done.append(step)
        return LaunchResult(self._container(served, steps), served)

    def _carry_out(self, step: Step) -> Served | None:
        if isinstance(step, AwaitReady):
            return self._await(step)
        self.tools.lock.acquire(LOCK_PATIENCE)
        backend = self.tools.backend
        match step:
            case CreateContainer(plan, labels):
                backend.create(plan, labels, self.launch.secrets)
            case StartContainer(container):
                backend.start(container)
            case StopContainer(container, timeout=timeout):
                self.tools.lock.stopping(container)
                backend.stop(container, timeout)
            case RenameContainer(container, after=after):
                backend.rename(container, after)
            case ApplyRestart(container, policy=policy):
                backend.set_restart(container, policy)
            case _:
                assert_never(step)
        return None

    def _await(self, step: AwaitReady) -> Served:
        """Release the lock while the boot is watched, so that `down` can end it."""
        found = self.tools.backend.find(step.container)
        self.watched = found.id if found else ""
        self.tools.lock.release()
        return await_ready(step, self.launch, self.tools)

    def _container(self, served: Served | None, steps: tuple[Step, ...]) -> Container:
        started = (step.container for step in reversed(steps) if isinstance(step, StartContainer))
        named = served.container.id if served else next(started, None)
        container = self.tools.backend.find(named) if named else self._running()
        if container is None:
            raise ContainerGoneError(self.launch.name)
        return container

    def _running(self) -> Container | None:
        plan, containers = self.launch.digest, self.tools.backend.containers()
        live = (container for container in containers if is_live(container))
        return next((container for container in live if container.labels.get(LABEL_PLAN) == plan), None)

    def _interrupted(self, step: Step | None) -> LaunchInterruptedError:
        """A started container keeps running; before the start, everything is undone.

        `step` is the interrupted one, if it had begun.
        """
        done = (*self.done, *((step,) if step else ()))
        started = next((earlier for earlier in done if isinstance(earlier, StartContainer | AwaitReady)), None)
        found = self.tools.backend.find(started.container) if started else None
        if found is not None and is_live(found):
            return LaunchInterruptedError(self.launch, running=True)
        back = undo(done, self.tools, doubtful=step) if done and self._alone(done[-1]) else ()
        return LaunchInterruptedError(self.launch, running=False, put_back=back)

    def _failed(self, error: Gb300Error, step: Step) -> Gb300Error:
        done = tuple(self.done)
        if any(isinstance(earlier, AwaitReady) for earlier in done):
            return error  # It serves; only the restart policy could not be set.
        if not isinstance(step, AwaitReady):
            # A container that could not be created is not removed: another launch may have taken the name.
            if self._alone(step):
                undo(done if isinstance(step, CreateContainer) else (*done, step), self.tools)
            return error
        existing = (earlier for earlier in done if not isinstance(earlier, CreateContainer))
        others = tuple(earlier for earlier in existing if earlier.container != step.container)
        if isinstance(error, BootTimedOutError) and not others:
            return error  # Keep an hour-long boot running: the next `up` continues to watch it.
        if not isinstance(error, BootFailedError | BootTimedOutError | WrongServerError) or not self._alone(step):
            return error  # Docker failed, not the boot: the state of the container is unknown.
        return self._ended(error, step, others)

    def _ended(
        self, error: BootFailedError | BootTimedOutError | WrongServerError, step: AwaitReady, others: tuple[Step, ...]
    ) -> Gb300Error:
        by = self.tools.lock.stopped_by(self.watched)
        if by is not None:
            return LaunchOvertakenError(self.launch, by)
        if self.names_back and not any(isinstance(earlier, CreateContainer) for earlier in self.done):
            kept = end(step.container, self.tools)
            ending = replace(error.ending, container=kept, put_back=undo(tuple(self.done), self.tools))
            found = self.tools.backend.find(self.watched)  # undone, it has its kept name again
            ending = replace(ending, container=found.name if found else kept)
        else:
            kept = set_aside(step.container, step.name, self.tools)
            ending = replace(error.ending, container=kept, put_back=undo(others, self.tools))
        return _with_ending(error, self.launch, replace(ending, exit_code=self._exit_code(ending)))

    def _exit_code(self, ending: Ending) -> int | None:
        """Also of an engine that was about to end by itself when it was stopped."""
        if ending.exit_code is not None:
            return ending.exit_code
        with suppress(BackendError):
            kept = find_remaining(self.tools.backend, self.watched)
            if kept and not is_live(kept) and kept.exit_code not in STOPPED:
                return kept.exit_code
        return None

    def _alone(self, step: Step) -> bool:
        """Whether the lock is held for changes; if not, that is announced and nothing is changed."""
        try:
            self.tools.lock.acquire(LOCK_PATIENCE)
        except MachineError as error:
            self.tools.announce(UndoFailed(step, error.message))
            return False
        return True


def _with_ending(
    error: BootFailedError | BootTimedOutError | WrongServerError, launch: Launch, ending: Ending
) -> BootFailedError | BootTimedOutError | WrongServerError:
    match error:
        case BootFailedError():
            return BootFailedError(launch, ending)
        case BootTimedOutError():
            return BootTimedOutError(launch, ending, error.waiting_for, error.silent, limited=error.limited)
        case WrongServerError():
            return WrongServerError(launch, ending, error.listener)
        case _:
            assert_never(error)
