"""Which start of a container is its last one, as `docker_backend` reads it from the Engine."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from gb300serve.adapters.docker.backend import DockerBackend
from gb300serve.adapters.docker.inspect import NANO, nanoseconds
from gb300serve.adapters.docker.logs import Start
from tests.support.fake_clock import FakeClock

STARTED, FINISHED = "2026-11-30T00:00:10.5Z", "2026-11-30T00:00:12Z"
AT = nanoseconds(STARTED)


@dataclass
class Ended:
    """The Engine's answer to what happened, in one piece."""

    pieces: list[bytes]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pieces.clear()

    def next(self, timeout: float) -> bytes | None:
        return self.pieces.pop(0) if self.pieces else None


@dataclass
class Restarting:
    """One container whose last start ended, and whose restart policy waits; the start before ended at `died`."""

    died: list[int] = field(default_factory=list)

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        state = {"StartedAt": STARTED, "FinishedAt": FINISHED, "Running": True, "Restarting": True}
        return {"Id": "abc", "State": state, "Config": {"Tty": False}}

    def post(self, path: str, params: Mapping[str, Any] | None = None, body: Any = None, timeout: float = 60.0) -> Any:
        raise AssertionError(path)

    def delete(self, path: str, params: Mapping[str, Any] | None = None) -> None:
        raise AssertionError(path)

    def stream(self, path: str, params: Mapping[str, Any], *, method: str = "GET", body: Any = None) -> Ended:
        assert path == "/events"
        return Ended([b"".join(json.dumps({"timeNano": end}).encode() + b"\n" for end in self.died)])


def test_a_start_that_is_to_be_restarted_has_ended_and_keeps_its_whole_log() -> None:
    """Docker says Running while it waits; the end that it tells is this start's, not the one's before."""
    start = DockerBackend(Restarting(), FakeClock()).last_start("lane")
    assert start == Start(AT, 0, running=False)
    assert start.log_from == AT - NANO


def test_the_end_before_is_looked_up() -> None:
    died = AT - NANO // 2
    assert DockerBackend(Restarting([died]), FakeClock()).last_start("lane") == Start(AT, died, running=False)


def test_nothing_runs_between_two_starts() -> None:
    assert DockerBackend(Restarting(), FakeClock()).started_at("lane") == 0
