"""No Docker Engine answers: no such socket, one that nobody listens on or may use, a server that never says a word."""

import json
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.forked import Forked
from tests.support.program import ROOT, Program
from tests.support.unprivileged import Unprivileged

NOBODY = 65534
ANOTHER = "or name another one: `docker: {host: …}` in the site file, or DOCKER_HOST"


@dataclass(frozen=True, slots=True)
class Absence:
    """`program` finds no Engine, for a `reason`, and is told what to do; `asked` counts who has connected since."""

    program: Program
    reason: str
    hint: str
    asked: Callable[[], int] = int


def missing(home: Path) -> Iterator[Absence]:
    program = Forked(home, {"DOCKER_HOST": f"unix://{home}/docker.sock"})
    yield Absence(
        program, "No such file or directory", f"the socket does not exist: install Docker or start it, {ANOTHER}"
    )


def dead(home: Path) -> Iterator[Absence]:
    with socket.socket(socket.AF_UNIX) as socket_file:
        socket_file.bind(str(home / "docker.sock"))
        program = Forked(home, {"DOCKER_HOST": f"unix://{home}/docker.sock"})
        hint = f"nobody listens there: start it (sudo systemctl start docker), {ANOTHER}"
        yield Absence(program, "Connection refused", hint)


def denied(home: Path) -> Iterator[Absence]:
    """Of another user and mode 0600; where nobody can give files away, one's own and of mode 0."""
    path = home / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        path.chmod(0o600 if os.geteuid() == 0 else 0)
        program = Unprivileged(home, {"DOCKER_HOST": f"unix://{path}"})
        hint = "your user may not use its socket: run as root, or join its group (sudo usermod -aG docker $USER)"
        yield Absence(program, "Permission denied", hint)


def silent(home: Path) -> Iterator[Absence]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.0)
        program = Forked(home, {"DOCKER_HOST": f"tcp://127.0.0.1:{listener.getsockname()[1]}"})
        hint = f"it does not answer in time: restart it (sudo systemctl restart docker), {ANOTHER}"
        yield Absence(program, "timed out", hint, lambda: taken(listener))


def taken(listener: socket.socket) -> int:
    """How many connections wait to be accepted; they are, and closed."""
    count = 0
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


@pytest.fixture(params=[missing, dead, denied, silent], ids=lambda each: each.__name__)
def absence(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Absence]:
    yield from request.param(tmp_path)


@pytest.mark.parametrize(
    "words", [("up", "v14"), ("up", "v14", "--replace"), ("status",), ("status", "--json")], ids=" ".join
)
def test_one_sentence_and_what_to_do(absence: Absence, words: tuple[str, ...]) -> None:
    ended = absence.program.run(*words)
    host = absence.program.variables["DOCKER_HOST"]
    assert (ended.code, ended.err.splitlines()[-2:]) == (
        7,
        [
            f"gb300serve: no Docker Engine answers at {host}: {absence.reason}",
            f"  hint: {absence.hint}",
        ],
    )
    assert len([line for line in ended.err.splitlines() if line.startswith("gb300serve: ")]) == 1
    assert "Traceback" not in ended.err
    assert absence.asked() <= 1, "one that is silent is waited for once"
    if "--json" in words:
        assert json.loads(ended.out) == {"schema": "gb300serve.status/1", "lanes": [], "stations": []}
    else:
        assert ended.out == ""


def test_what_needs_no_docker_works(absence: Absence) -> None:
    program = absence.program
    shell = program.run("compile", "v14")
    (program.home / "launch.sh").write_text(shell.out)
    boot = str(ROOT / "tests" / "boot" / "logs" / "kv-too-small.log")
    told = {
        words: program.run(*words).code
        for words in (
            ("lint",), ("show", "v14"), ("diff", "v13", "v14"), ("fit", "v14"), ("import", "launch.sh"),
            ("diagnose", boot),
        )
    }  # fmt: skip
    assert (shell.code, list(told.values())) == (0, [0, 0, 0, 0, 0, 8]), told
    assert absence.asked() == 0


@pytest.mark.parametrize("verb", ["down", "logs", "receipts", "rollback", "probe"])
@pytest.mark.parametrize("simulated", [False, True], ids=["docker only", "after the simulated Station was used"])
def test_an_engine_that_does_not_answer_is_not_an_engine_without_lanes(
    absence: Absence, verb: str, simulated: bool
) -> None:
    if simulated:
        (absence.program.home / ".local/state/gb300serve/sim").mkdir(parents=True)
    ended = absence.program.run(verb)
    host = absence.program.variables["DOCKER_HOST"]
    assert (ended.code, f"no Docker Engine answers at {host}: {absence.reason}" in ended.err) == (7, True), ended.err
