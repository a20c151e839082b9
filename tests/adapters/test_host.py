import hashlib
import os
import resource
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gb300serve.adapters.host import BackendEngine, SystemMachine, nearest, refusal, usable_state, writable
from gb300serve.core.errors import BackendError
from gb300serve.core.values import Missing
from gb300serve.host.facts import ContainerFact, Directory, FileEntry, ImageFact, ListeningSocket, Space
from gb300serve.host.linux import Limit
from gb300serve.lifecycle.backend import Image
from gb300serve.lifecycle.launch import display_time
from tests.support.fake_backend import FakeBackend
from tests.support.launches import IMAGE, STRANGER


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path) -> SystemMachine:
    """Programs are looked for in the test's directory first."""
    return SystemMachine(str(tmp_path))


def test_a_program_that_answers_fails_or_is_not_there(machine: SystemMachine, tmp_path: Path) -> None:
    script(tmp_path / "good", 'echo "$@"')
    script(tmp_path / "bad", "echo 'No devices were found'; echo more; exit 6")
    script(tmp_path / "silent", "exit 9")
    script(tmp_path / "loud", "echo 'driver is gone' >&2; exit 1")
    assert machine.output(("good", "--x", "y")) == "--x y\n"
    assert machine.output(("bad",)) == Missing("bad failed: No devices were found")
    assert machine.output(("silent",)) == Missing("silent failed: exit code 9")
    assert machine.output(("loud",)) == Missing("loud failed: driver is gone")
    assert machine.output(("no-such-tool",)) == Missing("no-such-tool is not on PATH")


def test_a_program_that_does_not_end(tmp_path: Path) -> None:
    script(tmp_path / "endless", "exec sleep 60")
    assert SystemMachine(str(tmp_path), 0.2).output(("endless",)) == Missing("endless did not respond within 0.2 s")


def test_a_program_that_cannot_be_started(machine: SystemMachine, tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"\x7fELF")
    (tmp_path / "broken").chmod(0o755)
    assert machine.output(("broken",)) == Missing("broken: Exec format error")


def test_programs_are_found_outside_path_too(tmp_path: Path) -> None:
    assert SystemMachine("").program("sh") is not None
    script(tmp_path / "sh", "")
    assert SystemMachine(str(tmp_path)).program("sh") == str(tmp_path / "sh")
    assert SystemMachine("").program("no-such-tool") is None


def test_files(machine: SystemMachine, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc\xff")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "broken").symlink_to("nowhere")
    gone = f"{tmp_path}/gone"
    assert machine.read(str(path)) == "abc\ufffd"
    assert machine.begin(str(path), 2) == b"ab"
    assert machine.sha256(str(path)) == hashlib.sha256(b"abc\xff").hexdigest()
    assert machine.names(str(tmp_path)) == ("a", "broken", "link")
    real = os.path.realpath(path)
    assert machine.entry(str(tmp_path / "link")) == FileEntry(real, 4, directory=False)
    assert machine.entry(str(tmp_path)) == FileEntry(
        os.path.realpath(tmp_path), tmp_path.stat().st_size, directory=True
    )
    assert machine.entry(str(tmp_path / "broken")) is None
    assert machine.entry(f"{path}/below") is None
    missing = Missing(f"{gone}: No such file or directory")
    assert [machine.read(gone), machine.begin(gone, 1), machine.sha256(gone), machine.names(gone)] == [missing] * 4


def test_a_name_that_no_file_can_have(machine: SystemMachine) -> None:
    name = "/" + "x" * 300
    assert machine.entry(name) == Missing(f"{name}: File name too long")


def test_space_below_the_nearest_directory_that_exists(machine: SystemMachine, tmp_path: Path) -> None:
    found = machine.space(str(tmp_path / "not" / "yet"))
    assert isinstance(found, Space)
    assert found.real == os.path.realpath(tmp_path) == nearest(str(tmp_path / "x"))
    assert 0 <= found.free <= found.total


def test_the_limit_of_this_process(machine: SystemMachine) -> None:
    soft, hard = (
        -1 if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(resource.RLIMIT_MEMLOCK)
    )
    assert machine.memlock() == Limit(soft, hard)


@pytest.fixture
def port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        number: int = listener.getsockname()[1]
        yield number


@pytest.mark.skipif(sys.platform != "linux", reason="left out: /proc tells who listens")
def test_a_port(machine: SystemMachine, port: int) -> None:
    heard = machine.listener(port)
    assert isinstance(heard, ListeningSocket)
    assert (heard.port, heard.address) == (port, "127.0.0.1")
    assert heard.process is not None
    assert heard.process.endswith(f", process {os.getpid()}")


def test_a_free_port(machine: SystemMachine, free_port: int) -> None:
    assert machine.listener(free_port) is None


def test_a_directory_that_can_be_made_or_cannot(tmp_path: Path) -> None:
    fine = tmp_path / "a" / "b"
    assert writable(fine) == Directory(str(fine))
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "x"
    assert writable(below) == Directory(str(below), f"{os.path.realpath(tmp_path)}/file is a file")
    assert not fine.exists()
    assert refusal(fine) is None
    assert (refusal(tmp_path / "file"), refusal(below)) == ("it is a file", "Not a directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="left out: root may write everywhere")
def test_a_directory_of_somebody_else(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert writable(tmp_path) == Directory(str(tmp_path), f"{tmp_path} is not writable")
    below = tmp_path / "x"
    assert writable(below) == Directory(str(below), f"cannot create it: {tmp_path} is not writable")
    assert refusal(below) == "Permission denied"
    tmp_path.chmod(0o700)


def test_a_state_directory_whose_parts_are_something_else(tmp_path: Path) -> None:
    runs, journal = tmp_path / "runs", tmp_path / "journal.jsonl"
    assert usable_state(tmp_path, runs, journal) == Directory(str(tmp_path))
    journal.mkdir()
    assert usable_state(tmp_path, runs, journal) == Directory(str(tmp_path), f"{journal}: Is a directory")
    journal.rmdir()
    journal.write_text("")
    runs.write_text("")
    assert usable_state(tmp_path, runs, journal) == Directory(str(tmp_path), f"{os.path.realpath(runs)} is a file")
    assert usable_state(runs, runs / "runs", journal).problem == f"{os.path.realpath(runs)} is a file"


TAG = IMAGE.partition("@")[0]
FOUND = Image("sha256:aaaa", ("vllm/vllm-openai@sha256:00d5",), "arm64", ("vllm", "serve"))


def says(found: Mapping[str, Any]) -> Mapping[str, Any]:
    return found


def engine(**images: Image) -> BackendEngine:
    references = {"pinned": IMAGE, "tagged": TAG}
    backend = FakeBackend(images={references[name]: image for name, image in images.items()})
    backend.add(STRANGER)
    return BackendEngine(backend, lambda: says({"ServerVersion": "29"}))


def test_what_it_says() -> None:
    assert engine().info() == {"ServerVersion": "29"}
    assert engine().containers() == {
        "id-stranger": ContainerFact("someone", "lmsysorg/sglang:dev", display_time(STRANGER.started_at))
    }


def test_images() -> None:
    there = ImageFact("sha256:aaaa", FOUND.digests, "arm64", ("vllm", "serve"))
    assert engine(pinned=FOUND).image(IMAGE) == there
    assert engine(tagged=FOUND).image(TAG) == there
    assert engine(tagged=FOUND).image(IMAGE) == ImageFact(None, tagged=FOUND.digests)
    assert engine().image(IMAGE) == engine().image(TAG) == ImageFact(None)


def test_an_engine_that_does_not_answer_is_asked_once() -> None:
    asked = []

    def gone() -> Mapping[str, Any]:
        asked.append("info")
        raise BackendError("no Docker Engine answers")

    silent = BackendEngine(FakeBackend(images={IMAGE: FOUND}), gone)
    answers = [silent.info(), silent.image(IMAGE), silent.containers(), silent.info()]
    assert answers == [Missing("no Docker Engine answers")] * 4
    assert asked == ["info"]
