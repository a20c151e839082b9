"""A READY lane, followed until it ends: stopped on purpose, dead, or dying again and again under its restart policy."""

from collections import deque

from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.core.errors import BackendError
from gb300serve.lifecycle.conflicts import going, live
from gb300serve.lifecycle.events import LogSeen, NotReady, StepBegan
from gb300serve.lifecycle.failures import BootFailedError, CrashLoopError, Ending, LaneEndedError
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.logs import diagnose
from gb300serve.lifecycle.logs import died as has_died
from gb300serve.lifecycle.ports import Container
from gb300serve.lifecycle.ready import SETTLE_EVERY, SETTLE_TRIES, TAIL, Served, await_ready
from gb300serve.lifecycle.reconcile import STOP_TIMEOUT
from gb300serve.lifecycle.steps import ApplyRestart, AwaitReady, StopContainer
from gb300serve.lifecycle.tools import Tools

# Deaths in a row, without being READY between them, that make a loop: as many as `diagnose` counts in one log.
LOOP = 3
LOCK_PATIENCE = 60.0
# Docker waits 0.1 s before it restarts a container, twice as long each time, a minute at most.
RESTART_TRIES = 360
RESTART_EVERY = 0.25


def tail(served: Served, launch: Launch, tools: Tools) -> Container | None:
    """Follow a READY lane until it ends. Returns it when it was stopped on purpose, None when it is gone.

    Raises LaneEndedError when it died, CrashLoopError when its restart policy never brought it back (both 8).
    """
    while True:
        last = _followed(served, tools)
        now = _settled(served.container, tools)
        if now is None:
            return None
        if not live(now):
            return _ended(now, last, launch, tools)
        if now.started_at == served.container.started_at and now.state == "running":
            return now  # Its log ended before it did: nothing more can be told.
        served = _brought_back(served.container, now, _death(last, tools), launch, tools)


def _followed(served: Served, tools: Tools) -> tuple[str, ...]:
    """The last lines of its log."""
    last: deque[str] = deque(maxlen=TAIL)
    for line in served.stream or ():
        if line is not None:
            last.append(line.text)
            tools.announce(LogSeen(line))
    return tuple(last)


def _ended(ended: Container, last: tuple[str, ...], launch: Launch, tools: Tools) -> Container | None:
    """The container, where it was to end; None where it is removed meanwhile."""
    try:
        diagnosis = diagnose(ended, tools)
    except BackendError:
        if _remaining(tools.backend.find(ended.id)) is None:
            return None
        raise
    asked = diagnosis.state == "stopped" or tools.lock.stopped_by(ended.id) is not None
    if asked or not has_died(ended, diagnosis):
        return ended
    seconds = tools.backend.elapsed(ended.id)
    raise LaneEndedError(launch, Ending(diagnosis, last, seconds, ended.exit_code, ended.oom_killed))


def _death(last: tuple[str, ...], tools: Tools) -> Ending:
    """What its last words say; the log that the engine of containers has is the next boot's by now."""
    machine = tools.machine()
    for text in last:
        machine.feed(text)
    return Ending(machine.result(), last, 0.0)


def _brought_back(before: Container, now: Container, first: Ending, launch: Launch, tools: Tools) -> Served:
    """READY again; raises CrashLoopError when it has died LOOP times in a row."""
    deaths = 1
    while True:
        died = f"{now.name} died ({_cause(first.diagnosis)}), and its restart policy starts it again"
        tools.announce(NotReady(died))
        now = _running_again(before, now, tools)
        deaths = max(deaths, now.restart_count - before.restart_count)
        if deaths >= LOOP:
            with tools.uninterrupted():
                raise CrashLoopError(launch, first, deaths, stopped=_stop(now, tools))
        try:
            return await_ready(AwaitReady(now.id, now.name), launch, tools)
        except BootFailedError as error:
            deaths += 1
            before, found = now, tools.backend.find(now.id)
            if found is None or not live(found):
                raise LaneEndedError(launch, error.ending) from error
            now = found


def _running_again(before: Container, now: Container, tools: Tools) -> Container:
    """As it stands once it runs a new boot, or has died too often to wait for one."""
    for _ in range(RESTART_TRIES):
        if now.restart_count - before.restart_count >= LOOP or not live(now):
            break
        if now.state == "running" and now.started_at != before.started_at:
            break
        tools.clock.sleep(RESTART_EVERY)
        now = tools.backend.find(now.id) or now
    return now


def _stop(container: Container, tools: Tools) -> bool:
    """Without its policy, so that it stays stopped; False where the engine of containers would not."""
    away = ApplyRestart(container.id, container.name, "no", container.restart_policy)
    stop = StopContainer(container.id, container.name, STOP_TIMEOUT)
    try:
        tools.lock.acquire(LOCK_PATIENCE)
        tools.announce(StepBegan(away))
        tools.backend.set_restart(container.id, "no")
        tools.announce(StepBegan(stop))
        tools.lock.stopping(container.id)
        tools.backend.stop(container.id, STOP_TIMEOUT)
    except BackendError:
        return False
    finally:
        tools.lock.release()
    return True


def _cause(diagnosis: Diagnosis) -> str:
    return diagnosis.evidence[0].text if diagnosis.evidence else "it named no cause"


def _settled(container: Container, tools: Tools) -> Container | None:
    """As it stands once its engine of containers knows that it has ended, or that it runs again."""
    now = _remaining(tools.backend.find(container.id))
    for _ in range(SETTLE_TRIES):
        if now is None or not live(now) or now.started_at != container.started_at or now.state == "restarting":
            return now
        tools.clock.sleep(SETTLE_EVERY)
        now = _remaining(tools.backend.find(container.id))
    return now


def _remaining(found: Container | None) -> Container | None:
    """None for what is being removed: neither its log nor its exit code can be had any more."""
    return None if found is None or going(found) else found
