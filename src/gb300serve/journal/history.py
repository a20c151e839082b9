"""What the journal and the runs show together: which lane should run, who stopped it, which launch was good. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from gb300serve.journal.journal import JournalEntry, RunningLane
from gb300serve.journal.runs import UNFINISHED, RunRecord

# The journal entry follows the end of the container by some seconds, after a SIGKILL by thirty.
_ENTRY_DELAY = 60.0


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Entries and runs, oldest first."""

    entries: tuple[JournalEntry, ...] = ()
    runs: tuple[RunRecord, ...] = ()

    def last_change(self, on: str) -> JournalEntry | None:
        """The last change on this backend: its `after` are the lanes that should run."""
        return next((entry for entry in reversed(self.entries) if entry.on == on), None)

    def is_expected_to_run(self, container: str, on: str) -> bool:
        """Whether the container (by id) should run according to the journal."""
        last = self.last_change(on)
        return last is not None and container in _ids(last.after)

    def running_since(self, container: str, on: str) -> float | None:
        """Since when (seconds since 1970) the journal lists the container (by id) as running; None if it does not."""
        since = None
        for entry in reversed(self.entries):
            if entry.on == on:
                if container not in _ids(entry.after):
                    break
                since = entry.at
        return since

    def has_been_ready(self, container: str, since: float) -> bool:
        """Whether the container (by id) became READY in a launch or a rollback since then."""
        other_runs = {run.run for run in self.runs if run.container_id != container}
        return any(
            entry.result == "ready"
            and entry.at >= since
            and container in _ids(entry.after)
            and entry.run not in other_runs
            for entry in self.entries
        )

    def has_unfinished_launch(self, on: str) -> bool:
        """Whether a launch that began after the last change has not recorded its outcome yet."""
        last = self.last_change(on)
        return any(
            run.on == on and run.state in UNFINISHED and (last is None or run.began > last.at) for run in self.runs
        )

    def is_stopped_on_request(self, container: str, finished_at: float | None) -> bool:
        """Whether a command stopped or removed the container (by id), when it ended or later."""
        for entry in reversed(self.entries):
            before, after = _ids(entry.before), _ids(entry.after)
            if container in after:
                return False
            if container in before:
                return entry.result != "died" and (finished_at is None or entry.at > finished_at - _ENTRY_DELAY)
        return False

    def last_good(self, lane: str, on: str, *, other_than: str | None, release: str | None = None) -> RunRecord | None:
        """The last run of the lane that was READY, with another plan than `other_than`; if given, of `release`."""
        good = (run for run in reversed(self.runs) if (run.lane, run.on, run.good) == (lane, on, True))
        return next((run for run in good if run.plan != other_than and release in (None, run.release)), None)


def _ids(lanes: Iterable[RunningLane]) -> set[str]:
    return {lane.id for lane in lanes}


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """Medians over `runs` boots: seconds by phase (repeated phases are added up), and seconds until READY."""

    runs: int = 0
    phases: Mapping[str, float] = field(default_factory=dict)
    total: float | None = None


def measure_times(records: Iterable[RunRecord], plan: str, on: str, *, kept: bool) -> MeasuredTimes:
    """Measured over READY boots of new or of kept containers: 8 minutes and 4 to 5 minutes on the Station."""
    boots = [
        run for run in records if run.ready_seconds is not None and (run.plan, run.on, run.kept) == (plan, on, kept)
    ]
    if not boots:
        return MeasuredTimes()
    seconds: dict[str, list[float]] = {}
    for boot in boots:
        for name in dict.fromkeys(name for name, _ in boot.phases):
            seconds.setdefault(name, []).append(sum(spent for phase, spent in boot.phases if phase == name))
    totals = [boot.ready_seconds for boot in boots if boot.ready_seconds is not None]
    return MeasuredTimes(len(boots), {name: median(spent) for name, spent in seconds.items()}, median(totals))
