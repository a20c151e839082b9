import os
import socket
from pathlib import Path

import pytest

from gb300serve.adapters.docker.client import (
    DockerContextError,
    DockerEndpoint,
    DockerEngine,
    DockerUnreachableError,
    ssh_words,
)
from gb300serve.core.errors import BackendError
from tests.support.docker_context import write_context
from tests.support.docker_engine import watched_docker
from tests.support.ssh import ssh_stand_in

OPTIONS = ("ssh", "-o", "ConnectTimeout=30", "-T", "-o", "BatchMode=yes")
DIAL = ("docker", "system", "dial-stdio")


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("ssh://station", (*OPTIONS, "--", "station", *DIAL)),
        ("ssh://me@station:2222", (*OPTIONS, "-l", "me", "-p", "2222", "--", "station", *DIAL)),
        ("ssh://station/", (*OPTIONS, "--", "station", *DIAL)),
    ],
)
def test_words(host: str, words: tuple[str, ...]) -> None:
    assert ssh_words(host) == words


@pytest.mark.parametrize("host", ["ssh://", "ssh://me:secret@station", "ssh://station/run/docker.sock"])
def test_what_is_no_address(host: str) -> None:
    with pytest.raises(DockerUnreachableError, match=r"ssh://\[user@\]host\[:port\]"):
        ssh_words(host)


ANOTHER = "or name another one: `docker: {host: …}` in the site file, or DOCKER_HOST"


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory of Docker's client."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def test_connecting_waits_until_something_is_asked(tmp_path: Path) -> None:
    backend = watched_docker(f"unix://{tmp_path}/none.sock")
    with pytest.raises(DockerUnreachableError) as refused:
        backend.check()
    assert (
        refused.value.message == f"no Docker Engine answers at unix://{tmp_path}/none.sock: No such file or directory"
    )
    assert (refused.value.hint, refused.value.exit_code) == (
        f"the socket does not exist: install Docker or start it, {ANOTHER}",
        7,
    )


def test_a_port_that_nothing_listens_on() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DockerUnreachableError, match="Connection refused") as refused:
            watched_docker(host).check()
    assert refused.value.hint == f"nobody listens there: start it (sudo systemctl start docker), {ANOTHER}"


def test_an_engine_that_accepts_and_never_answers(tmp_path: Path) -> None:
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        tcp.bind(("127.0.0.1", 0))
        unix.bind(str(tmp_path / "silent.sock"))
        for listener, host in (
            (tcp, f"tcp://127.0.0.1:{tcp.getsockname()[1]}"),
            (unix, f"unix://{tmp_path}/silent.sock"),
        ):
            listener.listen()
            engine = DockerEngine(DockerEndpoint(host, patience=0.2))
            with pytest.raises(DockerUnreachableError, match=r"no Docker Engine answers at .*: timed out") as refused:
                engine.get("/info")
            assert refused.value.hint == (
                f"it does not answer in time: restart it (sudo systemctl restart docker), {ANOTHER}"
            )


def test_an_engine_that_is_not_there_is_asked_once(tmp_path: Path) -> None:
    """Several questions do not add up their waits."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        engine = DockerEngine(DockerEndpoint(f"tcp://127.0.0.1:{listener.getsockname()[1]}", patience=0.2))
        for _ in range(3):
            with pytest.raises(DockerUnreachableError, match="timed out"):
                engine.get("/info")
        listener.settimeout(0.0)
        listener.accept()[0].close()
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_what_each_errno_asks_for() -> None:
    told = {
        type(cause).__name__: str(DockerUnreachableError("unix:///d", "no", cause).hint).partition(",")[0]
        for cause in (FileNotFoundError(), ConnectionRefusedError(), PermissionError(), TimeoutError(), OSError())
    }
    assert told == {
        "FileNotFoundError": "the socket does not exist: install Docker or start it",
        "ConnectionRefusedError": "nobody listens there: start it (sudo systemctl start docker)",
        "PermissionError": "your user may not use its socket: run as root",
        "TimeoutError": "it does not answer in time: restart it (sudo systemctl restart docker)",
        "OSError": "start it",
    }


@pytest.mark.parametrize("first", [BackendError("the engine ended with exit code 3"), KeyboardInterrupt()])
def test_what_was_dealt_with_meanwhile_is_not_the_reason(tmp_path: Path, first: BaseException) -> None:
    backend = watched_docker(f"unix://{tmp_path}/none.sock")
    try:
        raise first
    except (BackendError, KeyboardInterrupt):
        with pytest.raises(DockerUnreachableError, match=r"none\.sock: No such file or directory$"):
            backend.check()


def test_an_address_that_is_none() -> None:
    with pytest.raises(DockerUnreachableError, match="no Docker Engine answers at nonsense://x: "):
        watched_docker("nonsense://x").check()


def test_a_host_beats_a_context(configuration: Path) -> None:
    write_context(configuration, "station", "ssh://me@station")
    assert DockerEndpoint.choose("unix:///run/other.sock", "station") == DockerEndpoint("unix:///run/other.sock")
    assert DockerEndpoint.choose(None, "station") == DockerEndpoint("ssh://me@station")


def test_the_context_that_the_client_uses(configuration: Path) -> None:
    assert DockerEndpoint.choose(None, None) == DockerEndpoint("unix:///var/run/docker.sock")
    write_context(configuration, "station", "ssh://me@station")
    (configuration / "config.json").write_text('{"currentContext": "station"}')
    assert DockerEndpoint.choose(None, None) == DockerEndpoint("ssh://me@station")


def test_a_context_that_is_not_there(configuration: Path) -> None:
    with pytest.raises(DockerContextError) as refused:
        watched_docker(None, "station")
    assert refused.value.message == "docker context 'station': not found"
    assert (refused.value.hint, refused.value.exit_code) == ("docker context ls shows those that exist", 7)


def test_what_ssh_says_where_it_cannot_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh_stand_in(tmp_path, {})
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(DockerUnreachableError) as refused:
        watched_docker("ssh://me@station").check()
    assert refused.value.message == (
        "no Docker Engine answers at ssh://me@station: ssh: Could not resolve hostname station"
    )


@pytest.mark.parametrize(
    ("host", "is_here", "hostname"),
    [
        ("unix:///run/docker.sock", True, None),
        ("ssh://me@station:2222", False, "station"),
        ("tcp://[fd00::1]:2376", False, "fd00::1"),
    ],
)
def test_the_machine_of_an_endpoint(host: str, is_here: bool, hostname: str | None) -> None:
    endpoint = DockerEndpoint(host)
    assert (endpoint.is_here, endpoint.hostname) == (is_here, hostname)
