"""`rollback` before its launch: the host, the run to return to, and the cost."""

from collections.abc import Iterator
from dataclasses import dataclass

from gb300serve.app.hosts import ContainerHost, Hosts, On
from gb300serve.app.launch import measured_times, plan_steps
from gb300serve.app.launchable import PreparedLaunch
from gb300serve.app.state import StateDirectory
from gb300serve.app.workspace import Workspace
from gb300serve.core.errors import BackendError
from gb300serve.journal.runs import RunHistory, RunRecord
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.launch import changed_secrets
from gb300serve.lifecycle.reconcile import is_live
from gb300serve.lifecycle.rollback import costs, kept_container, target


@dataclass(frozen=True, slots=True)
class RollbackTarget:
    """The run to return to, and the containers of the host."""

    record: RunRecord
    on: On
    containers: tuple[Container, ...]


def find_target(
    goal: str | None, workspace: Workspace, hosts: Hosts, state: StateDirectory, on: On | None
) -> RollbackTarget:
    """Raises MachineError (6) if there is nothing to return to, BackendError (7)."""
    history = state.history()
    for run in state.damaged_runs():
        workspace.console.message(f"the record of run {run} cannot be read and is ignored", "warning")
    on = _select_host(hosts, on, history)
    containers = hosts.at(on).backend.containers()
    record = target(*_named(goal, workspace, history), on, containers, history)
    return RollbackTarget(record, on, containers)


def rollback_costs(
    found: RollbackTarget, prepared: PreparedLaunch, host: ContainerHost, state: StateDirectory
) -> Iterator[str]:
    """Sentences to print before the launch."""
    steps = plan_steps(prepared.launch, host, replace=True)
    usual = measured_times(prepared.launch, steps, state.history())
    usable = [container for container in found.containers if not changed_secrets(prepared.launch, container)]
    kept = kept_container(found.record, usable)
    yield from costs(found.record, kept, usual, simulated=found.on == "sim")


def _select_host(hosts: Hosts, on: On | None, history: RunHistory) -> On:
    """The host with a running lane, else the host of the last change. Raises BackendError if one does not respond."""
    names = hosts.names(on)
    if len(names) == 1:
        return names[0]
    refused: BackendError | None = None
    for name in names:
        try:
            if any(container.ours and is_live(container) for container in hosts.at(name).backend.containers()):
                return name
        except BackendError as error:
            refused = error
    if refused is not None:
        raise refused
    return "sim" if history.entries and history.entries[-1].on == "sim" else "docker"


def _named(goal: str | None, workspace: Workspace, history: RunHistory) -> tuple[str | None, str | None]:
    """The lane, and the release if the user named one."""
    if goal is None or goal in {run.lane for run in history.runs}:
        return goal, None
    if goal in {ref.partition("/")[0] for ref in workspace.catalog.refs()}:
        return goal, None
    _, recipe = workspace.load(goal)
    return recipe.lane, recipe.release
