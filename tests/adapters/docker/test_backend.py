"""What the backend makes of refusals that a real Engine gives only at some moments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from gb300serve.adapters.docker.backend import UPDATE_TRIES, DockerBackend, raw_inspect
from gb300serve.adapters.docker.client import DockerRefusedError, NoSuchContainerError
from gb300serve.adapters.docker.logs import OpenChunks
from gb300serve.core.values import Missing
from tests.support.fake_clock import FakeClock
from tests.support.fake_machine import FakeMachine


class Answers:
    """An Engine that has these paths; what it lacks is 404, or the status given."""

    def __init__(self, paths: dict[str, Any], status: int = 404) -> None:
        self.paths, self.status = paths, status

    def get(self, path: str, params: Mapping[str, Any] = {}) -> Any:
        if path not in self.paths:
            raise DockerRefusedError("no such thing", self.status)
        return self.paths[path]

    def post(self, path: str, params: Mapping[str, Any] = {}, body: Any = None, timeout: float = 0) -> Any:
        raise AssertionError(path)

    def delete(self, path: str, params: Mapping[str, Any] = {}) -> None:
        raise AssertionError(path)

    def stream(self, path: str, params: Mapping[str, Any], *, method: str = "GET", body: Any = None) -> OpenChunks:
        raise AssertionError(path)


CONTAINER = {"Image": "sha256:ab"}


def test_both() -> None:
    engine = Answers({"/containers/a%2Fb/json": CONTAINER, "/images/sha256:ab/json": {"Id": "x"}})
    assert raw_inspect(engine, "a/b") == (CONTAINER, {"Id": "x"})


def test_an_image_that_is_gone() -> None:
    assert raw_inspect(Answers({"/containers/a/json": CONTAINER}), "a") == (CONTAINER, None)


def test_no_container() -> None:
    with pytest.raises(NoSuchContainerError):
        raw_inspect(Answers({}), "a")


def test_other_refusals_pass() -> None:
    with pytest.raises(DockerRefusedError):
        raw_inspect(Answers({"/containers/a/json": CONTAINER}, 500), "a")


DYING = "Cannot update container c0ffee: cannot update a stopped container: unknown"
REMOVING = "can not get logs from container which is dead or marked for removal"


@dataclass
class Refusing:
    """Refuses so many updates, and every log."""

    updates: int = 0
    asked: list[str] = field(default_factory=list)

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        raise AssertionError(path)  # never asked here

    def post(self, path: str, params: Mapping[str, Any] | None = None, body: Any = None, timeout: float = 60.0) -> Any:
        self.asked.append(path)
        if len(self.asked) <= self.updates:
            raise DockerRefusedError(DYING, 500)

    def delete(self, path: str, params: Mapping[str, Any] | None = None) -> None:
        raise AssertionError(path)  # never asked here

    def stream(self, path: str, params: Mapping[str, Any], *, method: str = "GET", body: Any = None) -> OpenChunks:
        raise DockerRefusedError(REMOVING, 409)


def test_a_policy_is_set_once_the_engine_has_noted_a_death() -> None:
    engine = Refusing(updates=3)
    DockerBackend(engine, FakeClock()).set_restart("lane", "no")
    assert engine.asked == ["/containers/lane/update"] * 4
    never = Refusing(updates=1000)
    with pytest.raises(DockerRefusedError, match="cannot update a stopped container"):
        DockerBackend(never, FakeClock()).set_restart("lane", "no")
    assert len(never.asked) == UPDATE_TRIES


def test_the_log_of_what_is_being_removed_is_gone() -> None:
    with pytest.raises(NoSuchContainerError):
        DockerBackend(Refusing(), FakeClock()).open_log("lane", 0, live=True)


def test_shared_memory_is_read_on_the_machine_of_the_engine() -> None:
    identity = "c0ffee00" * 8
    top = {"Titles": ["PID"], "Processes": [["7"]]}
    engine = Answers({"/containers/lane/json": {"Id": identity}, "/containers/lane/top": top})
    files: dict[str, str | bytes] = {
        "/proc/7/cgroup": f"0::/docker/{identity}\n",
        "/proc/7/status": "RssShmem:\t 2048 kB\n",
    }
    here = DockerBackend(engine, FakeClock(), machine=FakeMachine(files=files))
    assert here.shared_memory("lane") == 2 * 1024**2
    elsewhere = DockerBackend(engine, FakeClock()).shared_memory("lane")
    assert elsewhere == Missing("the Docker Engine runs on another machine", asked=False)
