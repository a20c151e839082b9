"""Receipts of a running lane, and of boot logs."""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gb300serve.app.diagnose import LogUnreadableError, read_log
from gb300serve.app.hosts import Hosts, On
from gb300serve.app.lanes import find_lane
from gb300serve.app.launchable import RECIPE, receipts_of
from gb300serve.app.state import StateDirectory
from gb300serve.app.workspace import Workspace, state_directory
from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.boot.events import BootBegan, Event, StartupComplete
from gb300serve.boot.prefixes import strip_prefixes
from gb300serve.boot.receipts import CheckedReceipt, LearnedBoot
from gb300serve.core.errors import Action, BootError
from gb300serve.core.files import expand_user
from gb300serve.engines.logs import boot_machine
from gb300serve.journal.runs import RunRecord
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.launch import CHANGED, Launch, release_of
from gb300serve.lifecycle.receipts import ReceiptCollector, Verdict, binding, verdict
from gb300serve.recipe.catalog import UnknownReleaseError
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import Recipe

_LOG = "log.txt"  # in the directory of a run


class NotAGoodBootError(BootError):
    """A boot that never served proves nothing about receipts."""

    def __init__(self, log: str, diagnosis: Diagnosis) -> None:
        reason = f", {diagnosis.reason}" if diagnosis.reason else ""
        super().__init__(
            f"{log} is not the log of a good boot: {diagnosis.state} in {diagnosis.phase}{reason}",
            suggest=(Action("diagnose", arguments=(log,), ref=""),),
        )


@dataclass(frozen=True, slots=True)
class ReceiptReport:
    """The checked receipts of a release. `where` names the container or the log."""

    release: str
    where: str
    receipts: tuple[CheckedReceipt, ...]
    verdict: Verdict
    binding: bool = True


def lane_receipts(ref: str | None, workspace: Workspace, hosts: Hosts, on: On | None) -> ReceiptReport:
    """Check a lane since its last start. Raises MachineError (6), BackendError (7)."""
    host, container = find_lane("receipts", ref, hosts, on)
    _, launch = launched(container, ref, workspace, host.on)
    machine, collector = boot_machine(), ReceiptCollector(launch)
    for line in host.backend.log(container.id):
        collector.feed(line.text, machine.feed(line.text, line.elapsed))
    receipts = collector.results(container.id, host.backend)
    return ReceiptReport(release_of(container), container.name, receipts, verdict(receipts, launch), binding(launch))


def log_receipts(workspace: Workspace, ref: str, log: str) -> ReceiptReport:
    """Check the log of a good boot. Raises NotAGoodBootError (8) for any other log."""
    loaded, recipe = workspace.load(ref)
    launch = Launch(workspace.compile(loaded, recipe), receipts=receipts_of(recipe))
    collector = ReceiptCollector(launch)
    for line, events in _good_boot(workspace, log):
        records = line.split("\r")
        collector.feed(records[0], events)
        for record in records[1:]:
            collector.feed(record)
    receipts = collector.lines()
    of_recipe = (receipt for receipt in receipts if receipt.kind == "line")
    return ReceiptReport(recipe.ref, log, receipts, verdict(of_recipe, launch))


def learned(workspace: Workspace, log: str) -> LearnedBoot:
    """Receipts from a good boot. Raises NotAGoodBootError (8)."""
    lesson = LearnedBoot()
    for _, events in _good_boot(workspace, log):
        lesson.take(events)
    return lesson


def _good_boot(workspace: Workspace, log: str) -> Iterator[tuple[str, tuple[Event, ...]]]:
    """Lines with their events. Raises NotAGoodBootError after the last line if the last boot never served."""
    machine, served = boot_machine(), False
    for line, at in strip_prefixes(log_lines(workspace, log)):
        events = machine.feed(line, at)
        served = served and not any(isinstance(event, BootBegan) for event in events)
        served = served or any(isinstance(event, StartupComplete) for event in events)
        yield line, events
    diagnosis = machine.result()
    if not served or diagnosis.state not in {"ready", "stopped"}:
        raise NotAGoodBootError(log, diagnosis)


def log_lines(workspace: Workspace, named: str) -> Iterator[str]:
    """The lines of a log file, of `-`, or of a run by its directory or its name."""
    path = expand_user(named)
    runs = state_directory(workspace) / "runs"
    inside = next((run / _LOG for run in (path, runs / named) if named != "-" and (run / _LOG).is_file()), None)
    if inside is None and named != "-" and not path.exists():
        raise LogUnreadableError(named, os.strerror(errno.ENOENT), runs=str(runs))
    yield from read_log(str(inside or named))


def launched(container: Container, ref: str | None, workspace: Workspace, on: On) -> tuple[Recipe, Launch]:
    """The recipe of the container, and its launch: its release with the container's actual arguments."""
    state = StateDirectory(workspace)
    named = release_of(container)
    run = next((run for run in reversed(state.history().runs) if run.container_id == container.id), None)
    loaded, recipe = _recipe_of(run, ref or named.removesuffix(CHANGED), workspace, state)
    plan = workspace.compile(loaded, recipe)
    # Without a run, the changes by `--set` are unknown.
    overrides = (run.overrides if run else ("?",)) if named.endswith(CHANGED) else ()
    launch = Launch(plan, receipts=receipts_of(recipe), on=on, overrides=overrides)
    return recipe, replace(launch, plan=replace(plan, command=container.command))


def _recipe_of(
    run: RunRecord | None, ref: str, workspace: Workspace, state: StateDirectory
) -> tuple[LoadedRecipe, Recipe]:
    """The release; if it was launched from a file and is in no recipes directory, the copy in its run."""
    try:
        return workspace.load(ref)
    except UnknownReleaseError:
        if run is None:
            raise
        return workspace.load(str(state.runs.directory / run.run / RECIPE))
