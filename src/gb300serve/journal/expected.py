"""How long a boot takes, from earlier runs of the same plan. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from gb300serve.journal.run_record import RunRecord


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """Medians over `runs` boots: seconds by phase name (a phase that comes twice counts whole), and until READY."""

    runs: int = 0
    phases: Mapping[str, float] = field(default_factory=dict)
    total: float | None = None


def measured(records: Iterable[RunRecord], plan: str, on: str, *, kept: bool) -> MeasuredTimes:
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
