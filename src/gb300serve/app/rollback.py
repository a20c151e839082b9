"""`rollback` up to its launch: the place, the run to return to, and what that costs."""

from dataclasses import dataclass, replace

from gb300serve.app.lanes import places
from gb300serve.app.launch import LaunchRequest, steps_of, usual_of
from gb300serve.app.services import RECIPE, On, Services
from gb300serve.core.errors import BackendError
from gb300serve.journal.history import RunHistory
from gb300serve.journal.runs import RunRecord
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.launch import other_secrets
from gb300serve.lifecycle.reconcile import live
from gb300serve.lifecycle.rollback import Wish, costs, kept_container, target


@dataclass(frozen=True, slots=True)
class Sought:
    """The run to return to, and where."""

    record: RunRecord
    on: On
    containers: tuple[Container, ...]


def sought(goal: str | None, services: Services, on: str | None) -> Sought:
    """Raises MachineError (6) where there is nothing to return to, BackendError (7)."""
    history = services.history()
    for run in services.damaged_runs():
        services.space.console.message(f"the record of run {run} cannot be read: it counts as nothing", "warning")
    place = _place(services, on, history)
    containers = services.backend(place).containers()
    return Sought(target(_wish(goal, services, history), place, containers, history), place, containers)


def asked_for(found: Sought, services: Services, reason: str | None) -> LaunchRequest:
    """The launch of that run, and what to say before it. Raises PlanDiffersError, and what `up` raises."""
    record = found.record
    launch = services.launch_again(record, found.on)
    own = str(services.runs.directory / record.run / RECIPE)
    asked = LaunchRequest(
        launch,
        "rollback",
        f"rollback {record.ref}",
        replace=True,
        follow=False,
        names_back=True,
        reason=reason,
        checked=replace(launch, given=own, overrides=()),
    )
    usual = usual_of(launch, steps_of(asked, services), services)
    usable = [each for each in found.containers if not other_secrets(launch, each)]
    kept = kept_container(record, usable)
    return replace(asked, told=tuple(costs(record, kept, usual, simulated=found.on == "sim")))


def _place(services: Services, on: str | None, history: RunHistory) -> On:
    """Where one of ours runs; else where the last change was."""
    looked = places(services, "sim" if on == "sim" else "docker" if on == "docker" else None)
    if len(looked) == 1:
        return looked[0]
    for place in looked:
        if _runs(services, place):
            return place
    last = history.entries[-1].on if history.entries else "docker"
    return "sim" if last == "sim" else "docker"


def _runs(services: Services, place: On) -> bool:
    try:
        return any(each.ours and live(each) for each in services.backend(place).containers())
    except BackendError:
        return False


def _wish(goal: str | None, services: Services, history: RunHistory) -> Wish:
    """A lane by its name, else a release."""
    words = services.space.words
    if goal is None:
        return Wish(found_by=words)
    lanes = {ref.partition("/")[0] for ref in services.space.catalog.refs()} | {each.lane for each in history.runs}
    if goal in lanes:
        return Wish(lane=goal, found_by=words)
    _, recipe = services.space.load(goal)
    return Wish(recipe.lane, recipe.release, words)
