from collections.abc import Mapping
from typing import Any

import pytest

from gb300serve.adapters.docker.backend import OpenChunks, raw_inspect
from gb300serve.adapters.docker.errors import DockerRefusedError, NoSuchContainerError


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
