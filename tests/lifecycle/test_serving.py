from collections.abc import Mapping
from dataclasses import replace

import pytest

from gb300serve.core.ports import Response
from gb300serve.journal.history import RunHistory
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.status import ServesWronglyError, look_again
from gb300serve.lifecycle.tools import Tools
from tests.support.entries import entry, record
from tests.support.fake_backend import FakeBackend
from tests.support.fake_http import BackendHttp
from tests.support.launches import SERVES, backend, container, launch

V14 = launch()


class Unhealthy(BackendHttp):
    def get(self, url: str, timeout: float, headers: Mapping[str, str] | None = None) -> Response:
        return Response(503, "") if url.endswith("/health") else super().get(url, timeout, headers)


def serving(**changes: object) -> tuple[FakeBackend, Container]:
    station = backend(SERVES)
    return station, station.add(container(V14, **changes), plan=V14.plan)


def differs(tools: Tools, found: Container, history: RunHistory = RunHistory()) -> tuple[str, ...]:  # noqa: B008 - frozen
    with pytest.raises(ServesWronglyError) as caught:
        look_again(found, V14, tools, history)
    assert (caught.value.exit_code, caught.value.hint) == (
        9,
        "it keeps running; to launch it anew: gb300serve down deepseek-v4.1-flash/v14 --remove, then "
        "gb300serve up deepseek-v4.1-flash/v14",
    )
    return caught.value.differs


def test_a_lane_that_serves_as_it_should() -> None:
    station, found = serving()
    assert look_again(found, V14, Tools(station, BackendHttp(station), station.clock), RunHistory()) == ()


def test_what_differs_is_named() -> None:
    station, found = serving(env={}, restart_policy="always")
    assert differs(Tools(station, BackendHttp(station), station.clock), found) == (
        "restart: the recipe says no, the container has always",
    )


def test_an_engine_that_is_dying() -> None:
    station, found = serving()
    assert differs(Tools(station, Unhealthy(station), station.clock), found) == (
        "degraded: /health does not answer with 200: its engine is dead or dying",
    )


def test_receipts_that_its_launch_did_not_keep() -> None:
    station, found = serving()
    unkept = {"name": "Loaded {value} configs", "state": "missing"}
    wrong = replace(record("v14"), container={"id": found.id}, exit={"tool": 9}, receipts=(unkept,))
    tools = Tools(station, BackendHttp(station), station.clock)
    assert differs(tools, found, RunHistory(runs=(wrong,))) == (
        "degraded: its boot did not keep: Loaded {value} configs (gb300serve receipts)",
    )


def test_a_lane_that_was_started_by_hand_serves_all_the_same() -> None:
    station, found = serving()
    down = entry(verb="down", result="stopped", after=())
    (told,) = look_again(found, V14, Tools(station, BackendHttp(station), station.clock), RunHistory((down,)))
    assert "it was started by other means" in told
