"""Operations on a real Docker Engine: restart policies, crash loops, a full state directory, rollback."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.test_lanes_on_docker import DAY_ZERO, SIMULATED
from tests.support.aftermath import Aftermath, DockerPlace, answers_at_last
from tests.support.checkpoints import write_whole
from tests.support.command import run
from tests.support.docker_recipe import DockerLane
from tests.support.program import Program, Result
from tests.support.station import Docker, Importer

pytestmark = pytest.mark.docker

# The simulated engine behind a switch: it fails as soon as it starts, or says two megabytes first.
ENTRY = """\
#!/bin/sh
[ -e /switch/fail ] && { echo "%s" >&2; exit 1; }
[ -e /switch/fail-once ] && { rm /switch/fail-once; echo "%s" >&2; exit 1; }
[ -e /switch/noise ] && { i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "noise noise noise noise noise noise \
noise noise noise noise noise noise noise $i"; done; }
exec vllm serve "$@"
"""
KV = (
    "ValueError: To serve at least one request with the model's max seq len (1048576), (2.2 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (0.65 GiB). Based on the available memory, the estimated "
    "maximum model length is 123264."
)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    found = Program(tmp_path, {"GB300SERVE_SITE": str(tmp_path / "site.yaml")})
    yield found
    found.run("down", "--timeout", "1")


@pytest.fixture
def lane(tmp_path: Path, docker_host: str, pinned_image: Importer, container_name: str, free_port: int) -> DockerLane:
    model = write_whole(tmp_path / "models" / "workbench")
    entry = tmp_path / "switch" / "entry"
    entry.parent.mkdir()
    entry.write_text(ENTRY % (KV, KV))
    entry.chmod(0o755)
    mounts = [
        {"source": "${cache}", "target": "/root/.cache/vllm"},
        {"source": str(entry.parent), "target": "/switch"},
    ]
    found = DockerLane(
        tmp_path, docker_host, pinned_image("workbench"), container_name,
        SIMULATED | {"port": free_port}, DAY_ZERO, model, {"GB300SERVE_SIM_SPEED": "800"},
        {"entrypoint": "/switch/entry", "mounts": mounts},
    )  # fmt: skip
    found.site()
    found.write("v1")
    found.write("v2", max_num_seqs=4)
    return found


def switch(lane: DockerLane) -> Path:
    return lane.home / "switch"


def state(program: Program) -> Path:
    return program.home / ".local" / "state" / "gb300serve"


def up(program: Program, release: str, *words: str) -> Result:
    ended = program.up_until_ready(release, *words)
    assert ended.code in {0, 130}, ended.err
    return ended


def policy(docker: Docker, name: str) -> str:
    return docker("inspect", "--format", "{{.HostConfig.RestartPolicy.Name}} {{.RestartCount}}", name)


def names(docker: Docker, lane: DockerLane) -> list[str]:
    return sorted(docker("ps", "--all", "--format", "{{.Names}}", "--filter", f"name={lane.name}").split())


def entries(program: Program) -> list[tuple[str, str]]:
    told = program.run("journal", "--json").document["entries"]
    return [(each["verb"], each["result"]) for each in told]


def test_a_boot_that_fails_under_a_restart_policy(program: Program, lane: DockerLane, docker: Docker) -> None:
    (switch(lane) / "fail").touch()
    failed = program.run("up", "v1")
    assert failed.code == 8, failed.err
    for fact in ("kv-cache-too-small", "2.2 GiB KV cache is needed", "0.65 GiB", "123264"):
        assert fact in failed.err
    (kept,) = names(docker, lane)
    assert kept.startswith(f"{lane.name}-failed-")
    assert policy(docker, kept) == "no 0"
    (path,) = (state(program) / "runs").iterdir()
    verdict = json.loads((path / "run.json").read_text())["verdict"]
    assert (verdict["reason"], verdict["diagnosis"]["values"]["estimated_max_model_len"]) == (
        "kv-cache-too-small",
        123264,
    )
    assert KV in (path / "log.txt").read_text()
    (switch(lane) / "fail").unlink()
    up(program, "v1")
    assert policy(docker, lane.name) == "unless-stopped 0"


def test_a_crash_loop_after_ready_is_stopped(program: Program, lane: DockerLane, docker: Docker) -> None:
    serving = program.start("up", "v1")
    assert serving.stderr is not None
    for line in serving.stderr:
        if line.startswith("serving at "):
            break
    (switch(lane) / "fail").touch()
    os.kill(int(docker("inspect", "--format", "{{.State.Pid}}", lane.name)), signal.SIGKILL)
    _, err = serving.communicate(timeout=120)
    assert serving.returncode == 8, err
    assert "times in a row under its restart policy; its restart policy was taken away and it was stopped" in err
    assert docker("inspect", "--format", "{{.State.Status}}", lane.name) == "exited"
    assert policy(docker, lane.name).startswith("no ")
    assert entries(program)[-1] == ("up", "crash-loop")


def test_an_engine_that_its_policy_brings_back_serves_again(program: Program, lane: DockerLane, docker: Docker) -> None:
    serving = program.start("up", "v1")
    assert serving.stderr is not None
    said = []
    for line in serving.stderr:
        said.append(line)
        if line.startswith("serving at "):
            os.kill(int(docker("inspect", "--format", "{{.State.Pid}}", lane.name)), signal.SIGKILL)
        if sum("READY: bench answers" in each for each in said) == 2:
            serving.send_signal(signal.SIGINT)
            break
    _, rest = serving.communicate(timeout=30)
    assert serving.returncode == 130, "".join(said) + rest
    assert any("and its restart policy starts it again" in line for line in said)
    assert policy(docker, lane.name) == "unless-stopped 1"


def test_ctrl_c_in_the_middle_of_a_boot(program: Program, lane: DockerLane, docker: Docker) -> None:
    lane.env["GB300SERVE_SIM_SPEED"] = "150"  # nothing is in the cache: tuning takes 30 s
    lane.write("v1")
    booting = program.start("up", "v1")
    assert booting.stderr is not None
    for line in booting.stderr:
        if "loading-weights" in line:
            break
    booting.send_signal(signal.SIGINT)
    asked = time.monotonic()
    time.sleep(0.1)
    booting.send_signal(signal.SIGINT)
    _, err = booting.communicate(timeout=30)
    assert (booting.returncode, time.monotonic() - asked < 2.0) == (130, True), err
    assert f"interrupted; {lane.name} keeps running" in err
    (found,) = program.run("status", "--on", "docker", "--json").document["lanes"]
    assert (found["state"] in {"booting", "tuning"}, found["drift"]) == (True, [])
    assert up(program, "v1").code == 130
    assert names(docker, lane) == [lane.name]
    assert entries(program) == [("up", "interrupted"), ("up", "ready")]


def test_rollback(program: Program, lane: DockerLane, docker: Docker) -> None:
    up(program, "v1")
    first = docker("inspect", "--format", "{{.Id}}", lane.name)
    up(program, "v2", "--replace")
    before = names(docker, lane)
    back = program.run("rollback", "--reason", "slower")
    assert back.code == 0, back.err
    assert docker("inspect", "--format", "{{.Id}}", lane.name) == first
    assert policy(docker, lane.name) == "unless-stopped 0"
    (told,) = program.run("journal", "--json", "-n", "1").document["entries"]
    assert (told["verb"], told["result"], told["reason"]) == ("rollback", "ready", "slower")

    served = names(docker, lane)
    assert served != before
    (switch(lane) / "fail").touch()
    failed = program.run("rollback")
    assert failed.code == 8, failed.err
    assert names(docker, lane) == served, "both names are as they were"
    (switch(lane) / "fail").unlink()
    up(program, "v1")
    assert docker("inspect", "--format", "{{.Id}}", lane.name) == first
    assert policy(docker, lane.name).startswith("unless-stopped")
    assert len(docker("ps", "--quiet", "--filter", f"name={lane.name}").split()) == 1


@pytest.mark.parametrize(
    ("broken", "code", "kept"),
    [
        ({}, 8, True),  # it dies as soon as it starts
        ({"memory": "1m"}, 7, False),  # Docker makes no container with less than 6 MiB
        ({"entrypoint": "/nothing/here"}, 7, False),  # nor does it start one without its program
    ],
    ids=["boot", "create", "start"],
)
def test_a_replacement_that_fails(
    program: Program, lane: DockerLane, docker: Docker, broken: dict[str, object], code: int, kept: bool
) -> None:
    up(program, "v1")
    place = DockerPlace(docker, lane.name)
    after = Aftermath(program, place, state(program), place.containers())
    replace(lane, container=lane.container | broken).write("v2", max_num_seqs=4)
    if not broken:
        (switch(lane) / "fail-once").touch()
    failed = program.run("up", "v2", "--replace", "--reason", "rehearsed")
    assert failed.code == code, failed.err
    assert "Traceback" not in failed.err
    url = f"http://127.0.0.1:{lane.options['port']}"
    assert answers_at_last(url)
    after.judge_up(program.run("up", "v1"), "v1", url)
    assert policy(docker, lane.name).startswith("unless-stopped")
    assert entries(program) == [("up", "ready"), ("up", "failed")]
    found = [each for each in place.containers() if each.release == "v2"]
    assert [each.name.startswith(f"{lane.name}-failed-") for each in found] == [True] * kept
    run = after.runs()[-1]
    assert (run["release"], run["state"], run["exit"]["tool"]) == ("v2", "failed", code)
    assert run["verdict"]["message"]


@pytest.fixture
def tiny(tmp_path: Path, lane: DockerLane) -> Iterator[Path]:
    """A state directory of 256 KiB."""
    directory = tmp_path / "tiny"
    directory.mkdir()
    mounted = subprocess.run(("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(directory)), check=False)
    if mounted.returncode != 0:
        pytest.skip("left out: needs to mount a tmpfs")
    with (tmp_path / "site.yaml").open("a") as site:
        site.write(f"state: {directory}\n")
    yield directory
    run("umount", str(directory))


def test_a_disk_that_fills_up_on_the_way(program: Program, lane: DockerLane, tiny: Path, docker: Docker) -> None:
    (switch(lane) / "noise").touch()
    served = up(program, "v1")
    assert served.err.count("cannot be written any more (No space left on device): the launch goes on") == 1
    assert "the log of this run is incomplete from 2" in served.err
    assert "READY: bench answers" in served.err
    assert "Traceback" not in served.err
    assert policy(docker, lane.name) == "unless-stopped 0"
    (path,) = (tiny / "runs").iterdir()
    record = json.loads((path / "run.json").read_text())
    assert (record["state"], record["log"]["complete"]) == ("ready", False)
    assert (path / "log.txt").read_text().endswith("\n")
    assert [each["state"] for each in program.run("status", "--json").document["lanes"]] == ["ready"]
    assert entries(program) == [("up", "ready")]
    run("mount", "-o", "remount,ro", str(tiny))
    down = program.run("down")
    assert (down.code, "the journal will lack an entry" in down.err) == (0, True), down.err


def test_a_state_directory_that_cannot_be_written(program: Program, lane: DockerLane, tiny: Path) -> None:
    run("mount", "-o", "remount,ro", str(tiny))
    refused = program.run("up", "v1")
    assert refused.code == 6
    assert f"{tiny}/runs cannot be written: Read-only file system; nothing was launched" in refused.err
    assert program.run("status", "--json").document["lanes"] == []
