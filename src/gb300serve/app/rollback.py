"""`rollback` up to its launch: the host, the run to return to, and what that costs."""

from collections.abc import Iterator
from dataclasses import dataclass

from gb300serve.app.hosts import ContainerHost, Hosts, On
from gb300serve.app.launch import measured_times, plan_steps
from gb300serve.app.launchable import PreparedLaunch, prepare_run
from gb300serve.app.state import StateDirectory
from gb300serve.app.workspace import Workspace
from gb300serve.core.errors import BackendError
from gb300serve.journal.history import RunHistory
from gb300serve.journal.runs import RunRecord
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.launch import changed_secrets
from gb300serve.lifecycle.reconcile import is_live
from gb300serve.lifecycle.rollback import RollbackGoal, costs, kept_container, target


@dataclass(frozen=True, slots=True)
class RollbackTarget:
    """The run to return to, and the containers beside it."""

    record: RunRecord
    on: On
    containers: tuple[Container, ...]


def find_target(
    goal: str | None, workspace: Workspace, hosts: Hosts, state: StateDirectory, on: On | None
) -> RollbackTarget:
    """Raises MachineError (6) where there is nothing to return to, BackendError (7)."""
    history = state.history()
    for run in state.damaged_runs():
        workspace.console.message(f"the record of run {run} cannot be read and is ignored", "warning")
    place = _place(hosts, on, history)
    containers = hosts.at(place).backend.containers()
    record = target(_goal(goal, workspace, history), place, containers, history)
    return RollbackTarget(record, place, containers)


def prepare_rollback(
    found: RollbackTarget, workspace: Workspace, hosts: Hosts, state: StateDirectory
) -> PreparedLaunch:
    """The launch of that run. Raises PlanDiffersError, and what `up` raises."""
    return prepare_run(workspace, hosts, state.runs.directory, found.record, found.on)


def rollback_costs(
    found: RollbackTarget, prepared: PreparedLaunch, host: ContainerHost, state: StateDirectory
) -> Iterator[str]:
    """Sentences to print before the launch."""
    steps = plan_steps(prepared.launch, host, replace=True)
    usual = measured_times(prepared.launch, steps, state.history())
    usable = [container for container in found.containers if not changed_secrets(prepared.launch, container)]
    kept = kept_container(found.record, usable)
    yield from costs(found.record, kept, usual, simulated=found.on == "sim")


def _place(hosts: Hosts, on: On | None, history: RunHistory) -> On:
    """The host where a lane of ours runs, else the one of the last change."""
    names = hosts.names(on)
    if len(names) == 1:
        return names[0]
    for name in names:
        if _has_lane(hosts, name):
            return name
    last = history.entries[-1].on if history.entries else "docker"
    return "sim" if last == "sim" else "docker"


def _has_lane(hosts: Hosts, name: On) -> bool:
    try:
        return any(container.ours and is_live(container) for container in hosts.at(name).backend.containers())
    except BackendError:
        return False


def _goal(goal: str | None, workspace: Workspace, history: RunHistory) -> RollbackGoal:
    """A lane by its name, else a release."""
    if goal is None:
        return RollbackGoal()
    lanes = {ref.partition("/")[0] for ref in workspace.catalog.refs()} | {run.lane for run in history.runs}
    if goal in lanes:
        return RollbackGoal(lane=goal)
    _, recipe = workspace.load(goal)
    return RollbackGoal(recipe.lane, recipe.release)
