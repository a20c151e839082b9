"""The runs that this machine keeps: their sizes, which of them are needed, and how to remove the others."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gb300serve.app.hosts import Hosts
from gb300serve.app.state import StateDirectory
from gb300serve.core.errors import BackendError
from gb300serve.journal.journal import format_time
from gb300serve.journal.runs import UNFINISHED, RunRecord
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.launch import is_failed
from gb300serve.lifecycle.reconcile import is_live

# `status` mentions runs that take more than that.
MUCH_BYTES = 20 * 1000**3
DAY = 86400.0


@dataclass(frozen=True, slots=True)
class KeptRun:
    """`bytes` is the size of its directory; `needed` states why it is not removed, "" for one that may go.

    `failed` is the container that was kept after its failed boot.
    """

    record: RunRecord
    bytes: int
    needed: str = ""
    failed: Container | None = None

    def as_json(self) -> dict[str, Any]:
        record = self.record
        return {
            "run": record.run,
            "release": record.ref,
            "on": record.on,
            "state": record.state,
            "began": format_time(record.began),
            "bytes": self.bytes,
            "needed": self.needed or None,
            "failed_container": self.failed.name if self.failed else None,
        }


@dataclass(frozen=True, slots=True)
class PruneLimits:
    """What may stay; None: no limit. Days since the launch, number of runs, bytes of all together."""

    days: float | None = None
    count: int | None = None
    bytes: int | None = None

    @property
    def are_given(self) -> bool:
        return (self.days, self.count, self.bytes) != (None, None, None)


def size_of_runs(state: StateDirectory) -> int:
    """Bytes of all run directories."""
    return _size(state.runs.directory)


def kept_runs(state: StateDirectory, hosts: Hosts) -> tuple[KeptRun, ...]:
    """All runs, oldest first. Raises BackendError (7) if the Engine of a run does not respond."""
    records = state.history().runs
    containers = _containers(hosts, {record.on for record in records})
    needed = dict(_needed(records, containers))
    by_id = {container.id: container for container in containers}
    return tuple(
        KeptRun(record, _size(state.runs.directory / record.run), needed.get(record.run, ""), _failed(record, by_id))
        for record in records
    )


def _containers(hosts: Hosts, places: set[str]) -> tuple[Container, ...]:
    found: list[Container] = []
    for name in hosts.names(None):
        try:
            found += hosts.at(name).backend.containers()
        except BackendError:
            if name in places:
                raise  # a run whose container still runs must not be removed
    return tuple(found)


def _failed(record: RunRecord, by_id: dict[str, Container]) -> Container | None:
    container = by_id.get(record.container_id or "")
    return container if container and container.ours and is_failed(container) and not is_live(container) else None


def _needed(records: tuple[RunRecord, ...], containers: tuple[Container, ...]) -> Iterator[tuple[str, str]]:
    """Runs that must stay, with the reason: of a lane the last good run, and the one that rollback returns to."""
    live: set[str | None] = {container.id for container in containers if is_live(container)}
    plans: dict[tuple[str, str], list[str]] = {}
    for record in reversed(records):
        seen = plans.setdefault((record.lane, record.on), [])
        if record.state in UNFINISHED:
            yield record.run, "its launch has not ended"
        elif record.container_id in live:
            live.discard(record.container_id)  # earlier runs of a container that was started again may go
            yield record.run, "its container runs"
        elif record.good and record.plan not in seen and len(seen) < 2:
            yield record.run, "the last good run" if not seen else "rollback returns to it"
        if record.good and record.plan not in seen:
            seen.append(record.plan)


def prunable(runs: tuple[KeptRun, ...], limits: PruneLimits, now: float) -> tuple[KeptRun, ...]:
    """The runs beyond the limits, oldest first; never one that is needed."""
    going: list[KeptRun] = []
    count, size = len(runs), sum(run.bytes for run in runs)
    for run in runs:
        too_old = limits.days is not None and now - run.record.began > limits.days * DAY
        too_many = limits.count is not None and count > limits.count
        too_large = limits.bytes is not None and size > limits.bytes
        if not run.needed and (too_old or too_many or too_large):
            going.append(run)
            count, size = count - 1, size - run.bytes
    return tuple(going)


def remove(runs: tuple[KeptRun, ...], state: StateDirectory, hosts: Hosts) -> Iterator[str]:
    """Remove the directories and the containers of failed boots; yields a sentence for each run. Raises OSError."""
    for run in runs:
        if run.failed is not None:
            hosts.at("sim" if run.record.on == "sim" else "docker").backend.remove(run.failed.id)
        # Renamed first: a removal that is cut short leaves no run that looks damaged.
        path = state.runs.directory / run.record.run
        going = path.with_name(f".{path.name}.removed")
        path.rename(going)
        shutil.rmtree(going)
        yield f"{run.record.run} was removed" + (f", and {run.failed.name}" if run.failed else "")


def _size(directory: Path) -> int:
    """Bytes of the files below; links are not followed, and what cannot be read counts as empty."""
    return sum(
        entry.lstat().st_size
        for root, _, files in os.walk(directory, onerror=lambda _: None)
        for entry in (Path(root) / name for name in files)
        if not entry.is_symlink()
    )
