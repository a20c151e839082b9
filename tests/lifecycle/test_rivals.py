import pytest

from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.identity import against_rivals
from gb300serve.probe.endpoint import ServerEndpoint
from gb300serve.probe.metrics import Metrics
from gb300serve.probe.readiness import Readiness
from tests.support.fake_backend import FakeBackend
from tests.support.fake_clock import START
from tests.support.launches import container, launch

V14 = launch()
OURS = container(V14, id="a" * 64, started_at=START)
RIVAL = container(V14, id="b" * 64, name="pasted", labels={}, started_at=START + 20.0)
AT = ServerEndpoint("http://127.0.0.1:30006")


def seen(born: float | None, *others: Container) -> Readiness:
    station = FakeBackend()
    station.add(OURS)
    for each in others:
        station.add(each)
    answer = Readiness("ready", identity="ours", metrics=Metrics(process_start=born))
    return against_rivals(answer, OURS, AT, station)


@pytest.mark.parametrize("born", [None, START, START + 9.0, START - 1.0])
def test_what_started_with_ours_is_ours(born: float | None) -> None:
    assert (seen(born, RIVAL).state, seen(born, RIVAL).identity) == ("ready", "ours")


def test_what_started_with_another_on_the_port_is_that_one() -> None:
    found = seen(START + 20.3, RIVAL)
    assert (found.state, found.identity) == ("other-server", "other")
    assert found.why == "the container pasted answers on this port, not dsv41-vllm"


def test_without_another_on_the_port_a_wrapper_may_take_its_time() -> None:
    assert seen(START + 20.3).state == "ready"


def test_what_is_no_answer_of_ours_stays_what_it_is() -> None:
    station = FakeBackend()
    station.add(RIVAL)
    silent = Readiness("silent", "connection refused")
    assert against_rivals(silent, OURS, AT, station) is silent
