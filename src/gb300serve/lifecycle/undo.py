"""Taking steps back: each looks at what is there first, so that a step that was cut short can be taken back too."""

from typing import assert_never

from gb300serve.core.errors import BackendError
from gb300serve.lifecycle.conflicts import going, live
from gb300serve.lifecycle.events import PutBack, SetAside, StepUndone, UndoFailed
from gb300serve.lifecycle.names import failed_name
from gb300serve.lifecycle.ports import LABEL_PLAN, Container
from gb300serve.lifecycle.reconcile import STOP_TIMEOUT
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
    """Stop what failed and keep it as `NAME-failed-<UTC>`; None where it is gone or would not be renamed."""
    found = tools.backend.find(container)
    if found is None or going(found):
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
    """Stop what failed where it is; its name, None where it is gone or would not stop."""
    found = tools.backend.find(container)
    if found is None or going(found):
        return None
    try:
        _quiet(found, tools)
    except BackendError as error:
        tools.announce(UndoFailed(StopContainer(found.id, found.name, STOP_TIMEOUT), error.message))
        return None
    return found.name


def _quiet(found: Container, tools: Tools) -> None:
    """Its restart policy goes first: under one, it would start again and again."""
    if found.restart_policy != "no":
        tools.backend.set_restart(found.id, "no")
    if live(found):
        tools.backend.stop(found.id, STOP_TIMEOUT)


def undo(steps: tuple[Step, ...], tools: Tools, doubtful: Step | None = None) -> tuple[str, ...]:
    """Take `steps` back, the last one first. `doubtful` was cut short: nobody knows whether it happened.

    One that cannot be taken back is announced and does not keep the others. Returns the names that run again.
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
    """True when something was changed."""
    name = step.plan.container.name if isinstance(step, CreateContainer) else step.container
    found = tools.backend.find(name)
    if found is None:
        return False
    match step:
        case CreateContainer():
            changed = _uncreate(step, found, tools)
        case StartContainer():
            changed = _unstart(found, tools)
        case StopContainer():
            changed = _unstop(step, found, tools, certain=certain)
        case RenameContainer():
            changed = _unrename(step, found, tools)
        case ApplyRestart():
            changed = _unset(step, found, tools)
        case AwaitReady():
            changed = False
        case _:
            assert_never(step)
    return changed


def _uncreate(step: CreateContainer, found: Container, tools: Tools) -> bool:
    """Created by this launch and never run: there is nothing to inspect. Anything else keeps its log."""
    if found.labels.get(LABEL_PLAN) != step.labels[LABEL_PLAN]:
        return False
    if found.state == "created":
        tools.backend.remove(found.id)
        return True
    return set_aside(found.id, found.name, tools) is not None


def _unstart(found: Container, tools: Tools) -> bool:
    if not live(found):
        return False
    tools.backend.stop(found.id, STOP_TIMEOUT)
    return True


def _unstop(step: StopContainer, found: Container, tools: Tools, *, certain: bool) -> bool:
    """A stop that was cut short still goes on in the engine: it has to end before the container can start again."""
    if live(found) and certain:
        return False
    if live(found):
        tools.backend.stop(found.id, step.timeout)
    tools.backend.start(found.id)
    return True


def _unrename(step: RenameContainer, found: Container, tools: Tools) -> bool:
    if found.name == step.before:
        return False
    tools.backend.rename(found.id, step.before)
    return True


def _unset(step: ApplyRestart, found: Container, tools: Tools) -> bool:
    """It served under this policy before: it is put back as it was, not launched anew."""
    tools.backend.set_restart(found.id, step.before)
    return True
