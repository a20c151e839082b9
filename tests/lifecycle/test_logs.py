import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import pytest

from gb300serve.core.errors import BackendError
from gb300serve.lifecycle.backend import Container, LogLine
from gb300serve.lifecycle.events import Announcement, BecameReady, LogSeen, NotReady
from gb300serve.lifecycle.failures import CrashLoopError, LaneEndedError
from gb300serve.lifecycle.logs import diagnose_container, follow_lane, logs
from gb300serve.lifecycle.ready import Served
from gb300serve.lifecycle.tools import Tools
from gb300serve.probe.readiness import Readiness
from tests.support.fake_backend import FakeBackend, Script
from tests.support.fake_clock import START
from tests.support.fake_http import BackendHttp
from tests.support.launches import BOOT, FAILS, SERVES, SHUTDOWN, backend, container, launch

V14 = launch()
TEXTS = [text for _, text in BOOT]
DEAD = "(APIServer pid=1) ERROR 11-29 20:50:05 [c.py:6] [shutdown] MPClient: engine core exited unexpectedly; starting"


def station_with(script: Script, ran_for: float = 3600.0) -> FakeBackend:
    station = backend()
    station.add(container(V14, started_at=START - ran_for), script, V14.plan)
    return station


def test_the_log_as_it_stands() -> None:
    station = station_with(SERVES)
    found = station.containers()[0]
    assert [line.text for line in logs(station, found)] == TEXTS
    assert [line.text for line in logs(station, found, tail=2)] == TEXTS[-2:]


def test_following_goes_on_after_the_tail_without_repeating() -> None:
    station = station_with(Script((*BOOT, (3700.0, "later")), ends_at=3800.0))
    found = station.containers()[0]
    assert [line.text for line in logs(station, found, tail=1, follow=True)] == [TEXTS[-1], "later"]
    endless = station_with(SERVES)
    stream = logs(endless, endless.containers()[0], follow=True)
    assert [line.text for line in itertools.islice(stream, len(TEXTS))] == TEXTS


@dataclass
class Rotated(FakeBackend):
    """Its oldest lines go between two readings of its log."""

    def follow(self, container: str, every: float) -> Iterator[LogLine | None]:
        yield from itertools.islice(super().follow(container, every), 3, None)


def test_a_log_that_is_rotated_meanwhile_loses_no_line_behind_the_tail() -> None:
    script = Script((*BOOT, (3700.0, "later"), (3701.0, "last")), ends_at=3800.0)
    station = Rotated()
    station.add(container(V14, started_at=START - 3600.0), script, V14.plan)
    found = station.containers()[0]
    assert [line.text for line in logs(station, found, tail=2, follow=True)] == [*TEXTS[-2:], "later", "last"]
    assert [line.text for line in logs(station, found, tail=0, follow=True)] == []
    assert [line.text for line in logs(station, found, follow=True)] == [*TEXTS[3:], "later", "last"]


def test_the_log_is_diagnosed_with_the_containers_clock() -> None:
    station = station_with(SERVES, ran_for=2100.0)
    assert (
        diagnose_container(station.containers()[0], Tools(station, BackendHttp(station), station.clock)).state
        == "ready"
    )
    station = station_with(Script(BOOT[:3]), ran_for=2100.0)
    assert (
        diagnose_container(station.containers()[0], Tools(station, BackendHttp(station), station.clock)).state
        == "stalled"
    )


def tailed(script: Script, told: list[Announcement]) -> tuple[Served, Tools]:
    station = station_with(script)
    found = station.containers()[0]
    stream = station.follow(found.id, 1.0)
    return Served(found, Readiness("ready"), 1.0, stream), Tools(
        station, BackendHttp(station), station.clock, told.append
    )


def test_a_lane_that_is_stopped_on_purpose_ends_the_tail() -> None:
    told: list[Announcement] = []
    served, tools = tailed(Script((*BOOT, (3700.0, SHUTDOWN[0])), ends_at=3701.0, exit_code=0), told)
    ended = follow_lane(served, V14, tools)
    assert ended is not None
    assert ended.exit_code == 0
    assert [each.line.text for each in told if isinstance(each, LogSeen)] == [*TEXTS, SHUTDOWN[0]]


def test_a_lane_that_dies_is_an_error_although_its_exit_code_is_zero() -> None:
    served, tools = tailed(Script((*BOOT, (3700.0, DEAD)), ends_at=3705.0, exit_code=0), [])
    with pytest.raises(LaneEndedError) as caught:
        follow_lane(served, V14, tools)
    assert caught.value.exit_code == 8
    assert "dsv41-vllm died while serving" in caught.value.message
    assert caught.value.ending.tail[-1] == DEAD


def test_a_lane_that_was_removed_is_gone() -> None:
    served, tools = tailed(SERVES, [])
    tools.backend.stop(served.container.id, 1.0)
    tools.backend.remove(served.container.id)
    assert follow_lane(Served(served.container, served.readiness, 1.0), V14, tools) is None


class Vanishing(FakeBackend):
    """As Docker does while it removes a container by force: it is there, and is not; its log is refused."""

    state: Literal["removing", "exited"] = "removing"

    def find(self, name: str) -> Container | None:
        found = super().find(name)
        state = self.state
        self.state = "removing"
        return replace(found, state=state, finished_at=self.clock.now(), exit_code=137) if found else None

    def log(self, container: str, tail: int | None = None) -> Iterator[LogLine]:
        raise BackendError("can not get logs from container which is dead or marked for removal")


@pytest.mark.parametrize("first", ["removing", "exited"])
def test_a_lane_that_is_being_removed_is_gone(first: Literal["removing", "exited"]) -> None:
    station = Vanishing()
    station.add(container(V14), SERVES, V14.plan)
    (found,) = station.containers()
    station.state = first
    tools = Tools(station, BackendHttp(station), station.clock)
    assert follow_lane(Served(found, Readiness("ready"), 1.0), V14, tools) is None


CAUSE = "[shutdown] MPClient: engine core exited unexpectedly; starting"


class Restarting(FakeBackend):
    """Its restart policy starts a container again, a second after it ended; `boots` say how each boot goes."""

    boots: tuple[Script, ...] = ()

    def _age(self, key: str) -> None:
        super()._age(key)
        ended = self._containers[key]
        if ended.state not in {"exited", "restarting"} or ended.restart_policy == "no" or ended.finished_at is None:
            return
        if self.clock.now() < ended.finished_at + 1.0:
            self._change(key, state="restarting")
            return
        self._scripts[key] = self.boots[min(ended.restart_count, len(self.boots) - 1)]
        self._said[key] = []
        again = {"state": "running", "started_at": ended.finished_at + 1.0, "finished_at": None, "exit_code": None}
        self._change(key, restart_count=ended.restart_count + 1, **again)


DIES = Script((*BOOT, (3700.0, DEAD)), ready_at=454.5, ends_at=3705.0, exit_code=0)


def restarting(*boots: Script) -> tuple[Restarting, Served, Tools, list[Announcement]]:
    """Serves under a policy and dies; then boots as `boots` say."""
    station, told = Restarting(images={}), list[Announcement]()
    station.boots = boots
    serving = station.add(container(V14, started_at=START - 3600.0, restart_policy="unless-stopped"), DIES, V14.plan)
    served = Served(serving, Readiness("ready"), 1.0, station.follow(serving.id, 1.0))
    return station, served, Tools(station, BackendHttp(station), station.clock, told.append), told


def test_a_lane_that_its_policy_brings_back_is_watched_on() -> None:
    station, served, tools, told = restarting(Script((*BOOT, (900.0, SHUTDOWN[0])), 454.5, 901.0, exit_code=0), SERVES)
    served_again: list[BecameReady] = []

    def stop_when_ready(announcement: Announcement) -> None:
        told.append(announcement)
        if isinstance(announcement, BecameReady):
            served_again.append(announcement)
            station.set_restart(served.container.id, "no")

    ended = follow_lane(served, V14, replace(tools, announce=stop_when_ready))
    assert ended is not None
    assert (ended.state, ended.restart_count, len(served_again)) == ("exited", 1, 1)
    (said,) = [each.why for each in told if isinstance(each, NotReady) and "died" in each.why]
    assert said == f"dsv41-vllm died ({CAUSE}); its restart policy starts it again"


def test_a_crash_loop_is_stopped_and_the_first_death_shown() -> None:
    station, served, tools, _ = restarting(FAILS)
    with pytest.raises(CrashLoopError) as caught:
        follow_lane(served, V14, tools)
    assert caught.value.exit_code == 8
    assert caught.value.message.splitlines()[0] == CAUSE
    assert "dsv41-vllm died 3 times in a row under its restart policy" in caught.value.message
    (found,) = station.containers()
    assert (found.state, found.restart_policy) == ("exited", "no")
    assert station.calls == ["restart dsv41-vllm no", "stop dsv41-vllm"]


def test_an_engine_that_will_not_stop_it_is_said() -> None:
    station, served, tools, _ = restarting(FAILS)

    def refuse(call: str) -> None:
        raise BackendError(call)

    station.before_call = refuse
    with pytest.raises(CrashLoopError, match="it could not be stopped"):
        follow_lane(served, V14, tools)


def test_a_log_that_ends_before_its_lane_is_no_death() -> None:
    station = station_with(SERVES)
    found = station.containers()[0]
    tools = Tools(station, BackendHttp(station), station.clock)
    ended = follow_lane(Served(found, Readiness("ready"), 1.0, iter(())), V14, tools)
    assert ended is not None
    assert ended.state == "running"
