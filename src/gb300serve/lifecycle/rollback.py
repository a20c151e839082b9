"""`rollback`: which earlier run of a lane is returned to, and at what cost. Pure; it is done as `up --replace` is."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gb300serve.core.errors import MachineError
from gb300serve.journal.history import MeasuredTimes, RunHistory
from gb300serve.journal.journal import format_time
from gb300serve.journal.runs import RunRecord
from gb300serve.lifecycle.backend import LABEL_LANE, LABEL_PLAN, Container
from gb300serve.lifecycle.launch import CHANGED, command
from gb300serve.lifecycle.reconcile import live


class NoLaneToReturnError(MachineError):
    """Without a REF the lane is the one that serves, or the last that did."""

    def __init__(self, again: str, lanes: Iterable[str] = ()) -> None:
        several = ", ".join(lanes)
        message = f"several lanes run: {several}" if several else "nothing serves, and nothing is known to have served"
        super().__init__(message, hint=f"say which: {again}")


class NothingToReturnToError(MachineError):
    """No other run of the lane was ever READY here."""

    def __init__(self, lane: str, wish: "Wish", on: str) -> None:
        what = f"{lane}/{wish.release}" if wish.release else f"another release of {lane}"
        up = command("up", "REF", "--replace", on=on, found_by=wish.found_by)
        super().__init__(
            f"there is nothing to roll back to: no run of {what} became READY here",
            hint=f"see: gb300serve journal; launch a release by name: {up}",
        )


class PlanDiffersError(MachineError):
    """What the run was launched from compiles to another plan now."""

    def __init__(self, record: RunRecord, reason: str, found_by: tuple[str, ...] = ()) -> None:
        again = command("up", record.ref.removesuffix(CHANGED), "--replace", on=record.on, found_by=found_by)
        super().__init__(
            f"the launch of run {record.run} cannot be made again: {reason}",
            hint=f"launch the release as it is now: {again}",
        )


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be returned to: a lane, and a release of it where one is named."""

    lane: str | None = None
    release: str | None = None
    found_by: tuple[str, ...] = ()
    """The options that led to the site and the Station, for commands in messages."""


def target(wish: Wish, on: str, containers: Iterable[Container], history: RunHistory) -> RunRecord:
    """The last good run of the lane that is of another plan than what serves (or served last)."""
    ours = [each for each in containers if each.ours]
    lane = wish.lane or _lane(wish, on, ours, history)
    serves = _plan(lane, on, ours, history)
    found = history.last_good(lane, on, other_than=serves, release=wish.release)
    if found is None:
        raise NothingToReturnToError(lane, wish, on)
    return found


def costs(record: RunRecord, kept: Container | None, usual: MeasuredTimes, *, simulated: bool) -> Iterator[str]:
    """What returning to the run means, a sentence a line."""
    yield f"back to {record.ref}, READY on {format_time(record.began)[:10]} (run {record.run})"
    yield (
        f"its container is kept as {kept.name}, and is started again"
        if kept
        else "no container of it can be started again: a fresh one is created"
    )
    if usual.total is None:
        yield "expected time: not known; on the Station 4 to 5 minutes for a kept container, 8 for a fresh one"
    else:
        clock = " of the simulated Station" if simulated else ""
        yield f"expected time: {usual.total:.0f} s{clock} until READY, the median of {usual.runs} such boots"
    yield _tuning(record)


def kept_container(record: RunRecord, containers: Iterable[Container]) -> Container | None:
    """The container of the run, else the newest of its plan, where one is there and not called failed."""
    same = [each for each in containers if each.ours and each.labels.get(LABEL_PLAN) == record.plan]
    own = [each for each in same if each.id == record.container_id]
    usable = [each for each in (own or same) if "-failed-" not in each.name]
    return max(usable, key=lambda each: each.finished_at or 0.0, default=None)


def _lane(wish: Wish, on: str, ours: list[Container], history: RunHistory) -> str:
    running = sorted({each.labels[LABEL_LANE] for each in ours if live(each) and LABEL_LANE in each.labels})
    again = command("rollback", "LANE", on=on, found_by=wish.found_by)
    if len(running) > 1:
        raise NoLaneToReturnError(again, running)
    if running:
        return running[0]
    last = history.last_change(on)
    served = (last.after or last.before) if last else ()
    if not served:
        raise NoLaneToReturnError(again)
    return served[0].release.rpartition("/")[0]


def _plan(lane: str, on: str, ours: list[Container], history: RunHistory) -> str | None:
    """Digest of what serves in the lane; else of what served there last."""
    for each in ours:
        if live(each) and each.labels.get(LABEL_LANE) == lane:
            return each.labels.get(LABEL_PLAN)
    for entry in reversed(history.entries):
        for served in (*entry.after, *entry.before) if entry.on == on else ():
            if served.release.startswith(f"{lane}/"):
                return served.plan
    return None


def _tuning(record: RunRecord) -> str:
    """What that run's log said of the kernel-tuning cache."""
    told = [each.get("values") or {} for each in record.receipts if each.get("name") == "tuning"]
    if any(values.get("missed") for values in told):
        return "kernels: they were tuned in that run and saved; they are loaded unless the cache was changed since"
    if told:
        loaded = told[-1].get("loaded")
        return f"kernels: that run loaded {loaded} configurations; no tuning unless the cache was changed since"
    return "kernels: that run's log says nothing of the tuning cache"
