"""A state directory that is full, or cannot be written, under a boot on a real Docker Engine."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import complete, run
from tests.support.docker_recipe import DockerLane
from tests.support.program import Program, Result, wait_for_end
from tests.support.station import Docker, part_program
from tests.support.switched import entries, happened, names, now, policy, switch
from tests.support.unprivileged import Unprivileged

pytestmark = pytest.mark.docker


@pytest.fixture
def program(switched_program: Program) -> Program:
    return switched_program


@pytest.fixture
def lane(switched_lane: DockerLane) -> DockerLane:
    return switched_lane


def state_at(lane: DockerLane, directory: Path) -> Path:
    """The site says so."""
    directory.mkdir(exist_ok=True)
    with (lane.home / "site.yaml").open("a") as site:
        site.write(f"state: {directory}\n")
    return directory


def loop_mounted(directory: Path, image: Path) -> None:
    if complete("mount", "-o", "loop,errors=remount-ro", str(image), str(directory)).returncode != 0:
        pytest.skip("left out: this kernel gives out no loop devices")


@pytest.fixture
def tiny(tmp_path: Path, lane: DockerLane) -> Iterator[Path]:
    """A state directory of 256 KiB."""
    directory = state_at(lane, tmp_path / "tiny")
    run("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(directory))
    yield directory
    run("umount", str(directory))


@pytest.fixture
def failing(tmp_path: Path, lane: DockerLane) -> Iterator[Path]:
    """A state directory on a file system that can be made to give up, as after an error of its disk."""
    part_program("mkfs.ext4", "a file system in a file")
    image, directory = tmp_path / "disk", state_at(lane, tmp_path / "failing")
    with image.open("wb") as file:
        file.truncate(8 * 1024 * 1024)
    run("mkfs.ext4", "-q", str(image))
    loop_mounted(directory, image)
    yield directory
    run("umount", str(directory))


def judge(path: Path, served: Result, why: str) -> None:
    """Said once on the way and once in the end; the engine served, and what there is of its run can be read."""
    assert served.code == 130, served.err
    assert "READY: bench answers" in served.err
    assert served.err.count(f"{path} can no longer be written ({why}): the launch continues") == 1
    assert served.err.count("the log of this run is incomplete from 2") == 1
    assert "Traceback" not in served.err
    assert (path / "log.txt").read_text().endswith("\n")
    assert all(json.loads(line) for line in (path / "events.jsonl").read_text().splitlines())
    assert not [each.name for each in path.iterdir() if each.name.endswith(".new")]


def test_a_disk_that_fills_up_on_the_way(program: Program, lane: DockerLane, tiny: Path, docker: Docker) -> None:
    (switch(lane) / "noise").touch()
    served = program.up_until_ready("v1")
    (path,) = (tiny / "runs").iterdir()
    judge(path, served, "No space left on device")
    assert policy(docker, lane.name) == "unless-stopped 0"
    record = json.loads((path / "run.json").read_text())
    assert (record["state"], record["log"]["complete"]) == ("ready", False)
    assert f"is incomplete from {record['log']['until']} on" in served.err
    assert [each["state"] for each in program.run("status", "--json").document["lanes"]] == ["ready"]
    assert entries(program) == [("up", "ready")]
    run("mount", "-o", "remount,ro", str(tiny))
    down = program.run("down")
    assert (down.code, "the journal will lack an entry" in down.err) == (0, True), down.err


def test_a_disk_that_becomes_read_only_between_two_phases(
    program: Program, lane: DockerLane, failing: Path, docker: Docker
) -> None:
    lane.env["GB300SERVE_SIM_SPEED"] = "400"  # nothing is in the cache: tuning takes 11 s
    lane.write("v1")
    process = program.start("up", "v1")
    assert process.stderr is not None
    told, identity = [], ""
    for line in process.stderr:
        told.append(line)
        if "loading-weights" in line and not identity:  # a long phase is told of more than once
            identity = docker("inspect", "--format", "{{.Id}}", lane.name)
            run("mount", "-o", "remount,abort", str(failing))
        if line.startswith("serving at "):
            process.send_signal(signal.SIGINT)
            break
    out, err = wait_for_end(process, 30)
    (path,) = (failing / "runs").iterdir()
    judge(path, Result(process.returncode, out, "".join(told) + err), "Read-only file system")
    assert docker("inspect", "--format", "{{.Id}}", lane.name) == identity
    assert policy(docker, lane.name) == "unless-stopped 0"
    assert json.loads((path / "run.json").read_text())["state"] == "booting"
    assert [each["state"] for each in program.run("status", "--json").document["lanes"]] == ["ready"]
    assert program.run("journal").code == 0


def refused(program: Program, docker: Docker, why: str) -> None:
    """Before anything runs, with its steps or without; looking works as always."""
    since = now(docker)
    for words in ((), ("--show-steps",)):
        ended = program.run("up", "v1", *words)
        assert ended.code == 6, ended.err
        (said,) = [line for line in ended.err.splitlines() if line.startswith("gb300serve: ")]
        assert said == f"gb300serve: {why}; nothing was launched"
    assert happened(docker, since) == []
    assert program.run("status", "--json").document["lanes"] == []
    assert program.run("journal").out == "no entries\n"


def test_a_read_only_file_system(program: Program, lane: DockerLane, tiny: Path, docker: Docker) -> None:
    run("mount", "-o", "remount,ro", str(tiny))
    refused(program, docker, f"{tiny}/runs cannot be written: Read-only file system")


def test_a_directory_that_may_not_be_written(lane: DockerLane, docker: Docker) -> None:
    directory = state_at(lane, lane.home / "closed")
    directory.chmod(0o500)
    program = Unprivileged(lane.home, {"GB300SERVE_SITE": str(lane.home / "site.yaml")})
    refused(program, docker, f"{directory}/runs cannot be written: Permission denied")
    assert names(docker, lane) == []


def test_a_file_in_the_place_of_the_runs(program: Program, lane: DockerLane, docker: Docker) -> None:
    directory = state_at(lane, lane.home / "state")
    (directory / "runs").write_text("")
    refused(program, docker, f"{directory}/runs cannot be written: it is a file")
