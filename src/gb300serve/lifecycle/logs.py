"""The log of a lane: printed, followed, and diagnosed when the lane ends."""

from collections import deque
from collections.abc import Iterator

from gb300serve.boot.diagnosis import LOOP, Diagnosis
from gb300serve.core.errors import BackendError
from gb300serve.fit.remedy import BootLogReader
from gb300serve.lifecycle.backend import Container, ContainerBackend, LogLine
from gb300serve.lifecycle.down import remove_policy, stop
from gb300serve.lifecycle.events import LogSeen, NotReady
from gb300serve.lifecycle.failures import STOPPED, BootFailedError, CrashLoopError, Ending, LaneEndedError
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.ready import SETTLE_EVERY, SETTLE_TRIES, TAIL, TICK, Served, await_ready
from gb300serve.lifecycle.reconcile import STOP_TIMEOUT, find_remaining, is_live
from gb300serve.lifecycle.steps import AwaitReady, StopContainer
from gb300serve.lifecycle.tools import Tools


def logs(
    backend: ContainerBackend, container: Container, *, tail: int | None = None, follow: bool = False
) -> Iterator[LogLine]:
    """The log since the last start, or its last `tail` lines; with `follow`, until the container ends."""
    if not follow:
        yield from backend.log(container.id, tail)
        return
    old = () if tail is None else tuple(line.elapsed for line in backend.log(container.id))
    yield from _from_tail(backend.follow(container.id, TICK), tail, old)


def _from_tail(stream: Iterator[LogLine | None], tail: int | None, old: tuple[float, ...]) -> Iterator[LogLine]:
    """The last `tail` of the lines with `old` times, and all later ones: a rotation may remove old lines."""
    left, end = len(old), max(old, default=0.0)
    last: deque[LogLine] = deque(maxlen=tail)
    for line in stream:
        if line is not None and left > 0 and line.elapsed <= end:
            last.append(line)
            left -= 1
        elif line is not None or left == 0 or (last and last[-1].elapsed >= end):
            yield from last
            last.clear()
            left = 0
            if line is not None:
                yield line
    yield from last


def diagnose_container(container: Container, tools: Tools) -> Diagnosis:
    """Diagnose the log since the last start, with the clock of a running container."""
    reading = BootLogReader(tools.machine())
    for line in tools.backend.log(container.id):
        reading.feed(line.text, line.elapsed)
    if is_live(container):
        reading.machine.tick(tools.backend.elapsed(container.id))
    return reading.result()


def has_died(container: Container, diagnosis: Diagnosis) -> bool:
    """Whether a container that served ended without a request to stop.

    vLLM 0.32 exits with 0 even when its engine dies: 0 means a stop only after the engine's shutdown line. Our own
    stops end with 137, 143 or 130, so these count as stops without other evidence.
    """
    if diagnosis.state == "stopped":
        return False
    if container.oom_killed or diagnosis.state == "failed":
        return True
    if container.exit_code == 0:
        return "vllm" in " ".join((container.image, *container.command[:3])).lower()
    return container.exit_code not in STOPPED | {130}


LOCK_PATIENCE = 60.0
# Docker waits 0.1 s before a restart, then twice as long each time, up to a minute.
RESTART_TRIES = 360
RESTART_EVERY = 0.25


def follow_lane(served: Served, launch: Launch, tools: Tools) -> Container | None:
    """Follow a READY lane until it ends. Returns the container if it was stopped on request, None if it was removed.

    Raises LaneEndedError if it died, CrashLoopError if its restart policy could not revive it (both 8).
    """
    while True:
        last = _followed(served, tools)
        now = _settled(served.container, tools)
        if now is None:
            return None
        if not is_live(now):
            return _ended(now, last, launch, tools)
        if now.started_at == served.container.started_at and now.state == "running":
            return now  # The log ended before the container: nothing more can be followed.
        served = _brought_back(served.container, now, _death(last, tools), launch, tools)


def _followed(served: Served, tools: Tools) -> tuple[str, ...]:
    last: deque[str] = deque(maxlen=TAIL)
    for line in served.stream or ():
        if line is not None:
            last.append(line.text)
            tools.announce(LogSeen(line))
    return tuple(last)


def _ended(ended: Container, last: tuple[str, ...], launch: Launch, tools: Tools) -> Container | None:
    try:
        diagnosis = diagnose_container(ended, tools)
    except BackendError:
        if find_remaining(tools.backend, ended.id) is None:
            return None
        raise
    asked = diagnosis.state == "stopped" or tools.lock.stopped_by(ended.id) is not None
    if asked or not has_died(ended, diagnosis):
        return ended
    seconds = tools.backend.elapsed(ended.id)
    raise LaneEndedError(launch, Ending(diagnosis, last, seconds, ended.exit_code, ended.oom_killed))


def _death(last: tuple[str, ...], tools: Tools) -> Ending:
    """The diagnosis of the last lines; Docker's log already belongs to the next boot."""
    machine = tools.machine()
    for text in last:
        machine.feed(text)
    return Ending(machine.result(), last, 0.0)


def _brought_back(before: Container, now: Container, first: Ending, launch: Launch, tools: Tools) -> Served:
    """Await READY after a restart; raises CrashLoopError after LOOP consecutive deaths."""
    deaths = 1
    while True:
        tools.announce(NotReady(f"{now.name} died ({_cause(first.diagnosis)}); its restart policy starts it again"))
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
            if found is None or not is_live(found):
                raise LaneEndedError(launch, error.ending) from error
            now = found


def _running_again(before: Container, now: Container, tools: Tools) -> Container:
    for _ in range(RESTART_TRIES):
        if now.restart_count - before.restart_count >= LOOP or not is_live(now):
            break
        if now.state == "running" and now.started_at != before.started_at:
            break
        tools.clock.sleep(RESTART_EVERY)
        now = tools.backend.find(now.id) or now
    return now


def _stop(container: Container, tools: Tools) -> bool:
    """Stop it without its restart policy, so that it stays stopped; False if Docker refuses."""
    try:
        tools.lock.acquire(LOCK_PATIENCE)
        remove_policy(container, tools)
        stop(StopContainer(container.id, container.name, STOP_TIMEOUT), tools)
    except BackendError:
        return False
    finally:
        tools.lock.release()
    return True


def _cause(diagnosis: Diagnosis) -> str:
    return diagnosis.evidence[0].text if diagnosis.evidence else "no cause was logged"


def _settled(container: Container, tools: Tools) -> Container | None:
    """The container once Docker reports that it has ended, or that it runs again."""
    now = find_remaining(tools.backend, container.id)
    for _ in range(SETTLE_TRIES):
        if now is None or not is_live(now) or now.started_at != container.started_at or now.state == "restarting":
            return now
        tools.clock.sleep(SETTLE_EVERY)
        now = find_remaining(tools.backend, container.id)
    return now
