import pytest

from gb300serve.lifecycle.events import Announcement, LogSeen
from gb300serve.lifecycle.failures import LaneEndedError
from gb300serve.lifecycle.following import tail
from gb300serve.lifecycle.ready import Served
from gb300serve.lifecycle.tools import Tools
from gb300serve.probe.readiness import Readiness
from tests.support.fake_backend import FakeBackend, Script
from tests.support.fake_clock import START
from tests.support.fake_http import BackendHttp
from tests.support.launches import BOOT, SERVES, SHUTDOWN, backend, container, launch

V14 = launch()
TEXTS = [text for _, text in BOOT]
DEAD = "(APIServer pid=1) ERROR 11-29 20:50:05 [c.py:6] [shutdown] MPClient: engine core exited unexpectedly; starting"


def station_with(script: Script, ran_for: float = 3600.0) -> FakeBackend:
    station = backend()
    station.add(container(V14, started_at=START - ran_for), script, V14.plan)
    return station


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
    ended = tail(served, V14, tools)
    assert ended is not None
    assert ended.exit_code == 0
    assert [each.line.text for each in told if isinstance(each, LogSeen)] == [*TEXTS, SHUTDOWN[0]]


def test_a_lane_that_dies_is_an_error_although_its_exit_code_is_zero() -> None:
    served, tools = tailed(Script((*BOOT, (3700.0, DEAD)), ends_at=3705.0, exit_code=0), [])
    with pytest.raises(LaneEndedError) as caught:
        tail(served, V14, tools)
    assert caught.value.exit_code == 8
    assert "dsv41-vllm died while serving" in caught.value.message
    assert caught.value.ending.tail[-1] == DEAD


def test_a_lane_that_was_removed_is_gone() -> None:
    served, tools = tailed(SERVES, [])
    tools.backend.stop(served.container.id, 1.0)
    tools.backend.remove(served.container.id)
    assert tail(Served(served.container, served.readiness, 1.0), V14, tools) is None
