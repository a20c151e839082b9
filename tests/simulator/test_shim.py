import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from gb300serve.simulator.shim import (
    ALREADY_RUNNING,
    DELETED,
    NO_CONTAINER,
    Log,
    engine_environment,
    rotate_log,
    take_lock,
)
from tests.support.command import complete
from tests.support.stand_in import SRC


def records(path: Path) -> list[tuple[str, str]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [(line["stream"], line["text"]) for line in lines]


def test_a_log_splits_at_line_feeds_and_carriage_returns(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", 1.0)
    log.feed("stdout", b"one\ntw")
    log.feed("stderr", b"\rbar 1\rba")
    assert records(tmp_path / "log") == [("stdout", "one"), ("stderr", "bar 1")]
    log.feed("stdout", b"o\n\n")
    log.feed("stderr", b"r 2\r")
    log.feed("stderr", b"bar 3\n")
    log.feed("stdout", b"caf\xc3\xa9 \xff")
    log.close()
    assert records(tmp_path / "log")[2:] == [
        ("stdout", "two"),
        ("stdout", ""),
        ("stderr", "bar 2"),
        ("stderr", "bar 3"),
        ("stdout", "caf\u00e9 \ufffd"),
    ]


def test_records_carry_virtual_time(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", 1000.0)
    log.started -= 5
    log.feed("stdout", b"one\n")
    log.close()
    assert json.loads((tmp_path / "log").read_text())["at"] >= 5000


def test_an_earlier_log_is_kept(tmp_path: Path) -> None:
    assert rotate_log(tmp_path, 1) == tmp_path / "log.jsonl"
    (tmp_path / "log.jsonl").write_text("first")
    assert not rotate_log(tmp_path, 2).exists()
    assert (tmp_path / "log-1.jsonl").read_text() == "first"


def test_the_engine_sees_the_containers_environment_and_how_it_is_rehearsed() -> None:
    container: dict[str, Any] = {
        "env": {"PIN_HOOK": "/w", "PYTHONPATH": "/w", "LD_PRELOAD": "x.so", "GB300SERVE_SIM_SPEED": "1"},
        "simulation": {"GB300SERVE_SIM_MODEL": "a/b"},
    }
    own = {"GB300SERVE_SIM_SPEED": "200", "PATH": "/bin", "PYTHONPATH": "/src", "HOME": "/root", "TOKEN": "s3cret"}
    assert engine_environment(container, own, 7) == {
        "PIN_HOOK": "/w",
        "GB300SERVE_SIM_MODEL": "a/b",
        "GB300SERVE_SIM_SPEED": "200",
        "GB300SERVE_SIM_SHIMMED": "7",
        "PATH": "/bin",
        "PYTHONPATH": "/src",
    }


def shim(directory: Path) -> int:
    words = (sys.executable, "-m", "gb300serve.simulator.shim", str(directory))
    return complete(*words, env={"PYTHONPATH": str(SRC)}).returncode


def test_no_container_and_one_that_runs(tmp_path: Path) -> None:
    assert shim(tmp_path) == NO_CONTAINER
    (tmp_path / "container.json").write_text('{"id": "half')
    assert shim(tmp_path) == NO_CONTAINER
    lock = take_lock(tmp_path)
    assert lock is not None
    assert shim(tmp_path) == ALREADY_RUNNING
    os.close(lock)


def test_a_whole_run(tmp_path: Path) -> None:
    container = {"command": ["--nope"], "env": {}, "simulation": {}}
    (tmp_path / "container.json").write_text(json.dumps(container))
    assert shim(tmp_path) == 0
    state = json.loads((tmp_path / "state.json").read_text())
    assert (state["start"], state["exit_code"], state["oom_killed"]) == (1, 2, False)
    assert state["started_at"] <= state["finished_at"]
    assert records(tmp_path / "log.jsonl")[-1] == ("stderr", "vllm: error: unrecognized arguments: --nope")
    assert shim(tmp_path) == 0
    assert json.loads((tmp_path / "state.json").read_text())["start"] == 2
    assert (tmp_path / "log-1.jsonl").exists()


def test_an_engine_does_not_outlive_its_directory(tmp_path: Path) -> None:
    directory = tmp_path / "container"
    directory.mkdir()
    container = {"command": ["--model", "/model"], "env": {}, "simulation": {}}
    (directory / "container.json").write_text(json.dumps(container))
    words = (sys.executable, "-m", "gb300serve.simulator.shim", str(directory))
    with subprocess.Popen(words, env={"PYTHONPATH": str(SRC), "GB300SERVE_SIM_SPEED": "1"}) as running:
        while "pid" not in json.loads(read(directory / "state.json") or "{}"):
            assert running.poll() is None
        shutil.rmtree(directory)
        assert running.wait(60) == DELETED
    assert not directory.exists()


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
