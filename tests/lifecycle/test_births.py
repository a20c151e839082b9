from collections.abc import Iterator
from dataclasses import replace

from gb300serve.lifecycle.backend import LogLine
from gb300serve.lifecycle.identity import Birth, birth, is_believed
from gb300serve.probe.endpoint import SGLANG, VLLM, ServerEndpoint
from gb300serve.probe.readiness import Readiness
from tests.boot.sglang_logs import SglangLog
from tests.support.fake_backend import FakeBackend
from tests.support.launches import container, launch

FIGURES = {
    "random_seed": 421873650,
    "load_weight": 61.2,
    "kv_cache_allocation": 0.44,
    "scheduler_e2e": 118.02,
    "tokenizer_e2e": 119.51,
}
OURS = ServerEndpoint("http://127.0.0.1:1", None, SGLANG)


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


def born(lines: list[str], endpoint: ServerEndpoint = OURS) -> tuple[Birth, int]:
    backend = Logged(lines)
    return birth(container(launch()), endpoint, backend), backend.read


def test_the_log_is_read_up_to_ready() -> None:
    ready = SglangLog().ready().lines
    found, read = born([*ready, "[2026-09-29 22:29:50] Decode batch"])
    assert (found.figures, found.served, read) == (FIGURES, True, len(ready))


def test_no_log_is_read_of_an_engine_that_tells_its_start() -> None:
    found, read = born(SglangLog().ready().lines, replace(OURS, engine=VLLM))
    assert (found.figures, found.served, read) == ({}, False, 0)


def test_another_boot_begins_anew() -> None:
    found, _ = born([*SglangLog().arguments().loaded().lines, *SglangLog().arguments().lines])
    assert (found.figures, found.served) == ({"random_seed": 421873650}, False)


def test_without_a_proof_the_log_must_say_that_it_serves() -> None:
    unknown, ours = Readiness("ready"), Readiness("ready", identity="ours")
    assert is_believed(ours, OURS, Birth())
    assert not is_believed(unknown, OURS, Birth())
    assert is_believed(unknown, OURS, Birth(served=True))
    assert is_believed(unknown, replace(OURS, engine=VLLM), Birth())
