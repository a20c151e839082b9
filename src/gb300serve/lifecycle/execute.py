"""Carrying out the steps, and taking them back in reverse when one fails or is interrupted."""

from dataclasses import dataclass, replace
from typing import assert_never

from gb300serve.core.errors import Gb300Error
from gb300serve.lifecycle.conflicts import live
from gb300serve.lifecycle.events import StepBegan
from gb300serve.lifecycle.failures import (
    BootFailedError,
    BootTimedOutError,
    Ending,
    LaunchInterruptedError,
    WrongServerError,
)
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.ports import Container
from gb300serve.lifecycle.ready import ContainerGoneError, Served, await_ready
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
from gb300serve.lifecycle.undo import set_aside, undo


@dataclass(frozen=True, slots=True)
class Launched:
    """`served` is None where READY was not waited for."""

    container: Container
    served: Served | None


def execute(steps: tuple[Step, ...], launch: Launch, tools: Tools) -> Launched:
    """Carry out the steps in order. A failed boot keeps its container under another name; what was replaced comes back.

    Raises BootError (8), BackendError (7), LaunchInterruptedError (130).
    """
    done: list[Step] = []
    served: Served | None = None
    for step in steps:
        tools.announce(StepBegan(step))
        try:
            served = _carry_out(step, launch, tools) or served
        except KeyboardInterrupt:
            raise _interrupted(step, tuple(done), launch, tools) from None
        except Gb300Error as error:
            raise _failed(error, step, tuple(done), launch, tools) from error.__cause__
        done.append(step)
    return Launched(_container(served, steps, launch, tools), served)


def _carry_out(step: Step, launch: Launch, tools: Tools) -> Served | None:
    backend = tools.backend
    match step:
        case CreateContainer(plan, labels):
            backend.create(plan, labels, launch.secrets)
        case StartContainer(container):
            backend.start(container)
        case StopContainer(container, timeout=timeout):
            backend.stop(container, timeout)
        case RenameContainer(container, after=after):
            backend.rename(container, after)
        case ApplyRestart(container, policy=policy):
            backend.set_restart(container, policy)
        case AwaitReady():
            return await_ready(step, launch, tools)
        case _:
            assert_never(step)
    return None


def _container(served: Served | None, steps: tuple[Step, ...], launch: Launch, tools: Tools) -> Container:
    """As it stands after the last step."""
    started = (step.container for step in reversed(steps) if isinstance(step, StartContainer))
    container = tools.backend.find(served.container.id if served else next(started, launch.name))
    if container is None:
        raise ContainerGoneError(launch.name)
    return container


def _interrupted(step: Step, done: tuple[Step, ...], launch: Launch, tools: Tools) -> LaunchInterruptedError:
    """What was started keeps running, with everything that led to it; before that, all is taken back."""
    started = next((each for each in (*done, step) if isinstance(each, StartContainer | AwaitReady)), None)
    found = tools.backend.find(started.container) if started else None
    if found is not None and live(found):
        return LaunchInterruptedError(launch, running=True)
    return LaunchInterruptedError(launch, running=False, put_back=undo((*done, step), tools, doubtful=step))


def _failed(error: Gb300Error, step: Step, done: tuple[Step, ...], launch: Launch, tools: Tools) -> Gb300Error:
    """The error to raise, after everything was put in order."""
    if any(isinstance(each, AwaitReady) for each in done):
        return error  # It serves; only its restart policy could not be set.
    if not isinstance(step, AwaitReady):
        # What could not be created is not ours to remove: another launch may just have taken the name.
        undo(done if isinstance(step, CreateContainer) else (*done, step), tools)
        return error
    others = tuple(each for each in done if not _about(each, step))
    if isinstance(error, BootTimedOutError) and not others:
        return error  # A boot of an hour is not thrown away: it is left running, and the next `up` watches on.
    if not isinstance(error, BootFailedError | BootTimedOutError | WrongServerError):
        return error  # The container's engine failed us, not the boot: nobody knows how it stands.
    kept = set_aside(step.container, step.name, tools)
    ending = replace(error.ending, container=kept, put_back=undo(others, tools))
    return _retold(error, launch, ending)


def _about(step: Step, awaited: AwaitReady) -> bool:
    """Whether the step is about the container whose boot was watched."""
    return isinstance(step, CreateContainer) or step.container == awaited.container


def _retold(
    error: BootFailedError | BootTimedOutError | WrongServerError, launch: Launch, ending: Ending
) -> BootFailedError | BootTimedOutError | WrongServerError:
    match error:
        case BootFailedError():
            return BootFailedError(launch, ending)
        case BootTimedOutError():
            return BootTimedOutError(launch, ending, error.waiting_for, error.silent)
        case WrongServerError():
            return WrongServerError(launch, ending)
        case _:
            assert_never(error)
