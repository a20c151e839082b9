"""How often a watch asks the Engine: a question takes 1.2 ms of a core."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gb300serve.adapters.docker.backend import GLANCE, DockerBackend
from gb300serve.adapters.docker.logs import OpenChunks
from tests.support.fake_clock import FakeClock

STARTED = "2026-11-30T00:00:00.5Z"


@dataclass
class Counting:
    """One container, started at STARTED or later, on a machine whose clock reads the moment of its start."""

    started: str = STARTED
    asked: Counter[str] = field(default_factory=Counter)

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        self.asked[path.rpartition("/")[2]] += 1
        if path == "/info":
            return {"SystemTime": STARTED}
        if path.endswith("/stats"):
            return {"cpu_stats": {"cpu_usage": {"total_usage": 3_000_000_000}}}
        return {"State": {"StartedAt": self.started, "Running": True}, "RestartCount": 2}

    def post(self, path: str, params: Mapping[str, Any] | None = None, body: Any = None, timeout: float = 60.0) -> Any:
        raise AssertionError(path)

    def delete(self, path: str, params: Mapping[str, Any] | None = None) -> None:
        raise AssertionError(path)

    def stream(self, path: str, params: Mapping[str, Any], *, method: str = "GET", body: Any = None) -> OpenChunks:
        raise AssertionError(path)


def test_one_inspection_serves_what_is_asked_at_the_same_tick() -> None:
    engine, clock = Counting(), FakeClock()
    backend = DockerBackend(engine, clock)
    backend.started_at("lane")
    assert backend.elapsed("lane") == 0.0
    assert backend.vitals("lane").restarts == 2
    assert engine.asked == {"json": 1, "info": 1, "stats": 1}


def test_it_is_good_for_a_moment_and_for_one_container() -> None:
    engine, clock = Counting(), FakeClock()
    backend = DockerBackend(engine, clock)
    assert (backend.elapsed("lane"), backend.elapsed("other")) == (0.0, 0.0)
    assert engine.asked["json"] == 2
    engine.started = "2026-11-30T00:00:00.6Z"  # it was started again
    clock.sleep(GLANCE)
    assert round(backend.elapsed("other"), 3) == GLANCE - 0.1
    assert engine.asked["json"] == 3


def test_the_start_itself_is_always_asked_for() -> None:
    engine = Counting()
    backend = DockerBackend(engine, FakeClock())
    first = backend.started_at("lane")
    engine.started = "2026-11-30T00:00:00.6Z"
    assert backend.started_at("lane") - first == 100_000_000
