"""`rollback`: the earlier run to return to, and what that costs. Pure; `up --replace` carries it out."""

from collections.abc import Iterable, Iterator

from gb300serve.core.errors import Action, MachineError
from gb300serve.journal.journal import format_time
from gb300serve.journal.runs import MeasuredTimes, RunHistory, RunRecord
from gb300serve.lifecycle.backend import LABEL_LANE, LABEL_PLAN, Container
from gb300serve.lifecycle.launch import CHANGED
from gb300serve.lifecycle.reconcile import is_live


class NoLaneToReturnError(MachineError):
    """Without a REF, the lane is the one that runs, or the last one that ran."""

    def __init__(self, lanes: Iterable[str] = ()) -> None:
        several = ", ".join(lanes)
        message = f"several lanes are running: {several}" if several else "no lane is running, and no run is recorded"
        super().__init__(message, suggest=(Action("rollback", "name the lane", ref="LANE"),))


class NothingToReturnToError(MachineError):
    """No other run of the lane was ever READY here."""

    def __init__(self, lane: str, release: str | None) -> None:
        what = f"{lane}/{release}" if release else f"another release of {lane}"
        super().__init__(
            f"there is nothing to roll back to: no run of {what} became READY here",
            suggest=(
                Action("journal", "see what was launched", ref=""),
                Action("up", "launch a release by name", ("--replace",), ref="REF"),
            ),
        )


class PlanDiffersError(MachineError):
    """The recipe and site of the run compile to another plan now."""

    def __init__(self, record: RunRecord, reason: str) -> None:
        super().__init__(
            f"the launch of run {record.run} cannot be repeated: {reason}",
            suggest=(
                Action("up", "launch the release as it is now", ("--replace",), ref=record.ref.removesuffix(CHANGED)),
            ),
        )


def target(
    lane: str | None, release: str | None, on: str, containers: Iterable[Container], history: RunHistory
) -> RunRecord:
    """The last good run of the lane whose plan differs from the one that runs (or ran last).

    `lane` and `release` are None where the user named none.
    """
    ours = [container for container in containers if container.ours]
    lane = lane or _lane(on, ours, history)
    record = history.last_good(lane, on, other_than=_plan(lane, on, ours, history), release=release)
    if record is None:
        raise NothingToReturnToError(lane, release)
    return record


def costs(record: RunRecord, kept: Container | None, usual: MeasuredTimes, *, simulated: bool) -> Iterator[str]:
    """What returning to the run means, one sentence per line."""
    yield f"back to {record.ref}, READY on {format_time(record.began)[:10]} (run {record.run})"
    yield (
        f"its container is kept as {kept.name} and is restarted"
        if kept
        else "none of its containers can be restarted: a fresh one is created"
    )
    if usual.total is None:
        yield "expected time: unknown; on the Station 4 to 5 minutes for a kept container, 8 for a fresh one"
    else:
        clock = " of the simulated Station" if simulated else ""
        yield f"expected time: {usual.total:.0f} s{clock} until READY, the median of {usual.runs} such boots"
    yield _tuning(record)


def kept_container(record: RunRecord, containers: Iterable[Container]) -> Container | None:
    """The container of the run, else the newest of its plan; never a failed one."""
    same = [container for container in containers if container.ours and container.labels.get(LABEL_PLAN) == record.plan]
    own = [container for container in same if container.id == record.container_id]
    usable = [container for container in (own or same) if "-failed-" not in container.name]
    return max(usable, key=lambda container: container.finished_at or 0.0, default=None)


def _lane(on: str, ours: list[Container], history: RunHistory) -> str:
    live = filter(is_live, ours)
    running = sorted({container.labels[LABEL_LANE] for container in live if LABEL_LANE in container.labels})
    if len(running) > 1:
        raise NoLaneToReturnError(running)
    if running:
        return running[0]
    last = history.last_change(on)
    served = (last.after or last.before) if last else ()
    if not served:
        raise NoLaneToReturnError()
    return served[0].release.rpartition("/")[0]


def _plan(lane: str, on: str, ours: list[Container], history: RunHistory) -> str | None:
    for container in ours:
        if is_live(container) and container.labels.get(LABEL_LANE) == lane:
            return container.labels.get(LABEL_PLAN)
    for entry in reversed(history.entries):
        for served in (*entry.after, *entry.before) if entry.on == on else ():
            if served.release.startswith(f"{lane}/"):
                return served.plan
    return None


def _tuning(record: RunRecord) -> str:
    tuning = [receipt.get("values") or {} for receipt in record.receipts if receipt.get("name") == "tuning"]
    if any(values.get("missed") for values in tuning):
        return "kernels: that run tuned and saved them; they are loaded unless the cache has changed since"
    if tuning:
        loaded = tuning[-1].get("loaded")
        return f"kernels: that run loaded {loaded} configurations; no tuning unless the cache has changed since"
    return "kernels: the log of that run does not mention the tuning cache"
