"""Receipts of a lane that runs, and of logs."""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gb300serve.app.diagnose import LogUnreadableError, read_log
from gb300serve.app.lanes import the_lane
from gb300serve.app.launchable import receipts_of
from gb300serve.app.services import RECIPE, On, Services
from gb300serve.app.workspace import Workspace, state_directory
from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.boot.events import BootBegan, Event, StartupComplete
from gb300serve.boot.receipts import CheckedReceipt, LearnedBoot
from gb300serve.core.errors import BootError
from gb300serve.core.files import expanded
from gb300serve.engines.logs import boot_machine
from gb300serve.journal.runs import RunRecord
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.launch import CHANGED, Launch, release_of
from gb300serve.lifecycle.receipts import Verdict, Witness, binding, verdict
from gb300serve.recipe.catalog import UnknownReleaseError
from gb300serve.recipe.load import Loaded
from gb300serve.recipe.model import Recipe

# As a run keeps it.
_LOG = "log.txt"


class NotAGoodBootError(BootError):
    """A log that proves nothing about receipts, because its boot did not come to serve."""

    def __init__(self, log: str, diagnosis: Diagnosis) -> None:
        reason = f", {diagnosis.reason}" if diagnosis.reason else ""
        super().__init__(
            f"{log} is not the log of a good boot: {diagnosis.state} in {diagnosis.phase}{reason}",
            hint=f"gb300serve diagnose {log}",
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """What a boot showed of the receipts of a release. `where` is the container's name or the log's."""

    release: str
    where: str
    receipts: tuple[CheckedReceipt, ...]
    verdict: Verdict
    binding: bool = True


def of_lane(services: Services, ref: str | None, on: On | None) -> Kept:
    """Of a container of ours, since its last start. Raises MachineError (6), BackendError (7)."""
    place, container = the_lane("receipts", ref, services, on)
    backend = services.backend(place)
    launch = _launch_of(container, ref, services, place)
    machine, witness = boot_machine(), Witness(launch)
    for line in backend.log(container.id):
        witness.feed(line.text, machine.feed(line.text, line.elapsed))
    receipts = witness.results(container.id, backend)
    judged = verdict(receipts, launch)
    return Kept(release_of(container), container.name, receipts, judged, binding(launch))


def of_log(space: Workspace, ref: str, log: str) -> Kept:
    """Of a log that somebody calls good. Raises NotAGoodBootError (8) where it is not."""
    loaded, recipe = space.load(ref)
    launch = Launch(space.compile(loaded, recipe), receipts=receipts_of(recipe))
    witness = Witness(launch)
    for line, events in _good_boot(space, log):
        records = line.split("\r")
        witness.feed(records[0], events)
        for record in records[1:]:
            witness.feed(record)
    receipts = witness.lines()
    of_recipe = (one for one in receipts if one.kind == "line")
    return Kept(recipe.ref, log, receipts, verdict(of_recipe, launch))


def learned(space: Workspace, log: str) -> LearnedBoot:
    """What a good boot showed. Raises NotAGoodBootError (8)."""
    lesson = LearnedBoot()
    for _, events in _good_boot(space, log):
        lesson.take(events)
    return lesson


def _good_boot(space: Workspace, log: str) -> Iterator[tuple[str, tuple[Event, ...]]]:
    """Lines with their events. Raises NotAGoodBootError after the last one, unless the last boot came to serve."""
    machine, served = boot_machine(), False
    for line in log_lines(space, log):
        events = machine.feed(line)
        if any(isinstance(event, BootBegan) for event in events):
            served = False
        served = served or any(isinstance(event, StartupComplete) for event in events)
        yield line, events
    diagnosis = machine.result()
    if not served or diagnosis.state not in {"ready", "stopped"}:
        raise NotAGoodBootError(log, diagnosis)


def log_lines(space: Workspace, named: str) -> Iterator[str]:
    """The lines of a log file, of `-`, or of a run by its directory or its name."""
    path = expanded(named)
    runs = state_directory(space) / "runs"
    inside = next((each / _LOG for each in (path, runs / named) if named != "-" and (each / _LOG).is_file()), None)
    if inside is None and named != "-" and not path.exists():
        raise LogUnreadableError(named, os.strerror(errno.ENOENT), runs=str(runs))
    yield from read_log(str(inside or named))


def _launch_of(container: Container, ref: str | None, services: Services, place: On) -> Launch:
    """The release that it was launched from, with the words that the container really has."""
    named = release_of(container)
    run = next((each for each in reversed(services.history().runs) if each.container_id == container.id), None)
    loaded, recipe = _recipe_of(run, ref or named.removesuffix(CHANGED), services)
    plan = services.space.compile(loaded, recipe)
    # Without a run nobody knows what `--set` changed.
    overrides = (run.overrides if run else ("?",)) if named.endswith(CHANGED) else ()
    launch = Launch(plan, receipts=receipts_of(recipe), on=place, overrides=overrides)
    return replace(launch, plan=replace(plan, command=container.command))


def _recipe_of(run: RunRecord | None, ref: str, services: Services) -> tuple[Loaded, Recipe]:
    """The release; where no recipes directory here has it (it was launched from a file), as its run kept it."""
    try:
        return services.space.load(ref)
    except UnknownReleaseError:
        if run is None:
            raise
        return services.space.load(str(services.runs.directory / run.run / RECIPE))
