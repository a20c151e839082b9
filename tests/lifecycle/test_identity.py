from collections.abc import Iterator
from dataclasses import replace

import pytest

from gb300serve.engines.sglang.engine import SGLANG
from gb300serve.engines.vllm.engine import VLLM
from gb300serve.lifecycle.backend import Container, Listener, LogLine
from gb300serve.lifecycle.identity import (
    BootIdentity,
    boot_identity,
    endpoint_of,
    engine_of,
    exclude_other_servers,
    foreign_listener,
    is_plausible,
    served_names,
)
from gb300serve.lifecycle.tools import Tools
from gb300serve.probe.endpoint import Metrics, ServerEndpoint
from gb300serve.probe.readiness import Readiness
from tests.boot.sglang_logs import SglangLog
from tests.support.fake_backend import FakeBackend
from tests.support.fake_clock import START
from tests.support.fake_http import FixedHttp
from tests.support.launches import STRANGER, container, launch

FIGURES = {
    "random_seed": 421873650,
    "load_weight": 61.2,
    "kv_cache_allocation": 0.44,
    "scheduler_e2e": 118.02,
    "tokenizer_e2e": 119.51,
}
OURS = ServerEndpoint("http://127.0.0.1:1", None, SGLANG.probe)


class Logged(FakeBackend):
    """One container with this log."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.lines = lines
        self.read = 0

    def log(self, container: str, tail: int | None = None) -> Iterator[LogLine]:
        for text in self.lines:
            self.read += 1
            yield LogLine(text, 0.0, "stdout")


def born(lines: list[str], endpoint: ServerEndpoint = OURS) -> tuple[BootIdentity, int]:
    backend = Logged(lines)
    return boot_identity(container(launch()), endpoint, backend), backend.read


def test_the_log_is_read_up_to_ready() -> None:
    ready = SglangLog().ready().lines
    found, read = born([*ready, "[2026-09-29 22:29:50] Decode batch"])
    assert (found.figures, found.served, read) == (FIGURES, True, len(ready))


def test_no_log_is_read_of_an_engine_that_tells_its_start() -> None:
    found, read = born(SglangLog().ready().lines, replace(OURS, engine=VLLM.probe))
    assert (found.figures, found.served, read) == ({}, False, 0)


def test_another_boot_begins_anew() -> None:
    found, _ = born([*SglangLog().arguments().loaded().lines, *SglangLog().arguments().lines])
    assert (found.figures, found.served) == ({"random_seed": 421873650}, False)


def test_without_a_proof_the_log_must_say_that_it_serves() -> None:
    unknown, ours = Readiness("ready"), Readiness("ready", identity="ours")
    assert is_plausible(ours, OURS, BootIdentity())
    assert not is_plausible(unknown, OURS, BootIdentity())
    assert is_plausible(unknown, OURS, BootIdentity(served=True))
    assert is_plausible(unknown, replace(OURS, engine=VLLM.probe), BootIdentity())


V14 = launch()


def test_the_container_knows_better_than_the_recipe() -> None:
    moved = container(V14, command=("--port", "30007", "--served-model-name", "a", "b", "--seed", "1"))
    assert endpoint_of(moved, V14) == ServerEndpoint("http://127.0.0.1:30007")
    assert served_names(moved, V14) == ("a", "b")


def test_the_recipe_fills_what_the_command_lacks() -> None:
    bare = container(V14, command=("/model",), host_network=False)
    assert endpoint_of(bare, replace(V14, address="10.0.0.2")) == ServerEndpoint("http://10.0.0.2:30006")
    assert endpoint_of(bare, None) is None
    assert served_names(bare, V14) == ("dsv41-flash-uva",)
    assert served_names(bare, None) == ("/model",)


VLLM_STRANGER = replace(STRANGER, image="vllm/vllm-openai")


def test_keys_come_from_the_command_or_the_environment() -> None:
    assert endpoint_of(replace(STRANGER, command=("--port=1", "--api-key=k")), None) == ServerEndpoint(
        "http://127.0.0.1:1", "k", SGLANG.probe
    )
    keyed = replace(
        STRANGER, image="vllm/vllm-openai", env={"VLLM_API_KEY": "k"}, host_network=False, published=(8021,)
    )
    assert endpoint_of(keyed, None) == ServerEndpoint("http://127.0.0.1:8021", "k", VLLM.probe)


def test_what_an_engine_is_asked_follows_from_the_recipe_or_the_image() -> None:
    assert engine_of(STRANGER, None) == SGLANG.probe
    assert (
        engine_of(replace(STRANGER, image="local", command=("python3", "-m", "sglang.launch_server")), None)
        == SGLANG.probe
    )
    assert engine_of(replace(STRANGER, image="local", command=("--model", "/m")), None) == VLLM.probe
    assert engine_of(STRANGER, V14) == VLLM.probe


OURS_INTRUDER = Listener(30006, "0.0.0.0", "vllm, process 7", 7)
PYTHON = Listener(30006, "127.0.0.1", "python3, process 9", 9)
PROXY = Listener(30006, "0.0.0.0", "docker-proxy, process 8", 8)
UNSEEN = Listener(30006, "127.0.0.1")
ELSEWHERE = Listener(30006, "192.168.1.2", "python3, process 9", 9)
SECOND = Listener(30006, "::", "python3, process 9", 9)


@pytest.mark.parametrize(
    ("listeners", "found"),
    [
        ((OURS_INTRUDER,), None),
        ((OURS_INTRUDER, PYTHON), PYTHON),
        ((OURS_INTRUDER, ELSEWHERE), None),
        ((OURS_INTRUDER, SECOND), SECOND),
        ((PROXY,), None),
        ((OURS_INTRUDER, UNSEEN), None),
        ((), None),
    ],
)
def test_who_a_client_reaches(listeners: tuple[Listener, ...], found: Listener | None) -> None:
    assert foreign_listener(listeners, frozenset({7}), "127.0.0.1") == found


OURS_RIVALS = container(V14, id="a" * 64, started_at=START)
RIVAL = container(V14, id="b" * 64, name="pasted", labels={}, started_at=START + 20.0)
AT = ServerEndpoint("http://127.0.0.1:30006")


def seen(born: float | None, *others: Container) -> Readiness:
    station = FakeBackend()
    station.add(OURS_RIVALS)
    for each in others:
        station.add(each)
    answer = Readiness("ready", identity="ours", metrics=Metrics(process_start=born))
    return exclude_other_servers(answer, OURS_RIVALS, AT, Tools(station, FixedHttp({}), station.clock))


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
    assert exclude_other_servers(silent, OURS_RIVALS, AT, Tools(station, FixedHttp({}), station.clock)) is silent


class Listening(FakeBackend):
    """The container's only process is 7."""

    def processes(self, container: str) -> frozenset[int]:
        del container
        return frozenset({7})

    def each_on(self, port: int) -> tuple[Listener, ...]:
        return (Listener(port, "127.0.0.1", "python3, process 9", 9),)


@pytest.mark.parametrize(("host_network", "state"), [(True, "other-server"), (False, "ready")])
def test_an_engine_on_the_hosts_network_listens_itself(host_network: bool, state: str) -> None:
    """A published port may be forwarded by a program that nobody has heard of."""
    station, ours = Listening(), replace(OURS_RIVALS, host_network=host_network)
    tools = Tools(station, FixedHttp({}), station.clock, listeners=station)
    found = exclude_other_servers(Readiness("ready", identity="ours"), ours, AT, tools)
    assert found.state == state
    if state != "ready":
        assert found.why == "python3, process 9, which listens there, answers on this port, not dsv41-vllm"
