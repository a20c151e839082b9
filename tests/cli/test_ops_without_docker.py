"""No Docker Engine answers: no such socket, one that nobody listens on, a server that never says a word."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.forked import Forked


@pytest.fixture(params=["missing", "dead", "silent"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Forked]:
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as dead, socket.create_server(("127.0.0.1", 0)) as silent:
        if request.param == "dead":
            dead.bind(str(path))
        hosts = {"silent": f"tcp://127.0.0.1:{silent.getsockname()[1]}"}
        yield Forked(tmp_path, {"DOCKER_HOST": hosts.get(request.param, f"unix://{path}")})


@pytest.mark.parametrize("words", [("up", "v14"), ("status",)], ids=" ".join)
def test_one_sentence_and_what_to_do(program: Forked, words: tuple[str, ...]) -> None:
    ended = program.run(*words)
    assert (ended.code, ended.out) == (7, "")
    (said,) = [line for line in ended.err.splitlines() if line.startswith("gb300serve: ")]
    assert program.variables["DOCKER_HOST"].removeprefix("tcp://") in said
    assert ended.err.splitlines()[-1].startswith("  hint: ")
    assert "Traceback" not in ended.err


def test_status_is_still_one_object(program: Forked) -> None:
    ended = program.run("status", "--json")
    assert (ended.code, json.loads(ended.out)["schema"]) == (7, "gb300serve.status/1")


def test_what_needs_no_docker_works(program: Forked) -> None:
    for words in (("compile", "v14"), ("lint",), ("show", "v14"), ("diff", "v13", "v14"), ("fit", "v14")):
        assert program.run(*words).code == 0, words
