import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from gb300serve.lifecycle.backend import LogLine
from gb300serve.lifecycle.logs import diagnose, logs
from gb300serve.lifecycle.tools import Tools
from tests.support.fake_backend import FakeBackend, Script
from tests.support.fake_clock import START
from tests.support.fake_http import BackendHttp
from tests.support.launches import BOOT, SERVES, backend, container, launch

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
    assert diagnose(station.containers()[0], Tools(station, BackendHttp(station), station.clock)).state == "ready"
    station = station_with(Script(BOOT[:3]), ran_for=2100.0)
    assert diagnose(station.containers()[0], Tools(station, BackendHttp(station), station.clock)).state == "stalled"
