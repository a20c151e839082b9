"""What the journal and the runs tell together: who asked for what about a container, which launch was good. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from gb300serve.journal.journal import JournalEntry, RunningLane
from gb300serve.journal.runs import UNFINISHED, RunRecord

# The end of a container is noted by its engine, the entry by us, some seconds later; a kill may take thirty.
_AROUND = 60.0


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Both the oldest first."""

    entries: tuple[JournalEntry, ...] = ()
    runs: tuple[RunRecord, ...] = ()

    def serving(self, on: str) -> JournalEntry | None:
        """The last change of what serves there: its `after` is what should run."""
        return next((each for each in reversed(self.entries) if each.on == on), None)

    def should_run(self, container: str, on: str) -> bool:
        """Whether the journal says that the container (by id) runs there."""
        last = self.serving(on)
        return last is not None and container in _ids(last.after)

    def began(self, container: str, on: str) -> float | None:
        """Since when, without a break, the journal has the container (by id) among what runs there; None: it has not.

        Seconds since 1970. What runs need not have become READY: see `became_ready`.
        """
        since = None
        for each in reversed(self.entries):
            if each.on == on:
                if container not in _ids(each.after):
                    break
                since = each.at
        return since

    def became_ready(self, container: str, since: float) -> bool:
        """Whether a launch or a rollback since then saw the container (by id) serve."""
        other = {run.run for run in self.runs if run.container_id != container}
        return any(
            each.result == "ready" and each.at >= since and container in _ids(each.after) and each.run not in other
            for each in self.entries
        )

    def under_way(self, on: str) -> bool:
        """Whether a launch there has begun since, and has not written down yet what came of it."""
        last = self.serving(on)
        return any(
            each.on == on and each.state in UNFINISHED and (last is None or each.began > last.at) for each in self.runs
        )

    def was_asked_to_end(self, container: str, finished_at: float | None) -> bool:
        """Whether a command of ours took the container (by id) away, when it ended or later."""
        for each in reversed(self.entries):
            before, after = _ids(each.before), _ids(each.after)
            if container in after:
                return False
            if container in before:
                return each.result != "died" and (finished_at is None or each.at > finished_at - _AROUND)
        return False

    def last_good(self, lane: str, on: str, *, other_than: str | None, release: str | None = None) -> RunRecord | None:
        """The last run of the lane that was READY, of another plan than `other_than`; of `release` if one is said."""
        fitting = (
            each
            for each in reversed(self.runs)
            if (each.lane, each.on, each.good) == (lane, on, True)
            and each.plan != other_than
            and release in (None, each.release)
        )
        return next(fitting, None)


def _ids(servings: Iterable[RunningLane]) -> set[str]:
    return {each.id for each in servings}


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """Medians over `runs` boots: seconds by phase name (a phase that comes twice counts whole), and until READY."""

    runs: int = 0
    phases: Mapping[str, float] = field(default_factory=dict)
    total: float | None = None


def measure_times(records: Iterable[RunRecord], plan: str, on: str, *, kept: bool) -> MeasuredTimes:
    """Of boots that became READY, fresh and kept containers apart: 8 minutes against 4 to 5 on the Station."""
    seen = (each for each in records if each.ready_seconds is not None)
    alike = [each for each in seen if (each.plan, each.on, each.kept) == (plan, on, kept)]
    if not alike:
        return MeasuredTimes()
    seconds: dict[str, list[float]] = {}
    for each in alike:
        for name, spent in _by_name(each).items():
            seconds.setdefault(name, []).append(spent)
    totals = [each.ready_seconds for each in alike if each.ready_seconds is not None]
    return MeasuredTimes(len(alike), {name: median(spent) for name, spent in seconds.items()}, median(totals))


def _by_name(record: RunRecord) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, seconds in record.phases:
        found[name] = found.get(name, 0.0) + seconds
    return found
