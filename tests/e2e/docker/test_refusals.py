"""What `up` refuses on a real Docker Engine, with everything in its place: a name, a GPU, a port that is taken."""

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.bench_host import write_nvidia_smi
from tests.support.docker_recipe import DockerLane
from tests.support.forked import Forked
from tests.support.program import Program
from tests.support.station import Docker
from tests.support.switched import entries, happened, names, now, said

pytestmark = pytest.mark.docker

# What a container is, as far as anybody could change it.
KEPT = "{{.Id}} {{.Name}} {{json .State}} {{json .HostConfig.RestartPolicy}}"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    found = Forked(tmp_path, {"GB300SERVE_SITE": str(tmp_path / "site.yaml"), "PATH": path})
    yield found
    found.run("down", "--timeout", "0")


@pytest.fixture
def lane(switched_lane: DockerLane) -> DockerLane:
    return switched_lane


def commands(hints: list[str]) -> list[list[str]]:
    """The commands of hints `PURPOSE: COMMAND`."""
    return [shlex.split(hint.removeprefix("  hint: ").partition(": ")[2]) for hint in hints]


def test_a_kept_container_has_the_name(program: Program, lane: DockerLane, docker: Docker) -> None:
    for release, seqs in (("v2", 8), ("v3", 4)):
        replace(lane, container=lane.container | {"gpus": None}).write(release, max_num_seqs=seqs)
    assert program.up_until_ready("v2").code == 130
    assert program.run("down").code == 0
    identity, ended, code = docker(
        "inspect", "--format", "{{.Id}} {{.State.FinishedAt}} {{.State.ExitCode}}", lane.name
    ).split()
    kept, log = docker("inspect", "--format", KEPT, lane.name), said(docker, lane.name)
    before, since = entries(program), now(docker)

    shown = program.run("up", "v3", "--show-steps")
    moment = f"{ended[:10]} {ended[11:19]}Z"
    assert shown.out.splitlines()[0].endswith(
        f"; workbench/v2, stopped {moment} with exit code {code}, is kept, and rollback returns to it"
    )
    assert docker("inspect", "--format", KEPT, lane.name) == kept
    # The mount sources are checked with a container that is never started.
    assert [each for each in happened(docker, since) if lane.name in each] == []
    assert docker("ps", "--quiet", "--filter", f"name={lane.name}") == ""
    assert entries(program) == before

    up = program.up_until_ready("v3")
    assert (up.code, "is kept, and rollback returns to it" in up.err) == (130, True)
    (moved,) = [each for each in names(docker, lane) if each != lane.name]
    assert moved.startswith(f"{lane.name}-kept-v2-")
    assert docker("inspect", "--format", "{{.Id}} {{.State.Status}}", moved) == f"{identity} exited"
    assert said(docker, moved) == log != ""


@pytest.fixture
def stranger(lane: DockerLane, docker: Docker) -> str:
    """Nobody's lane: a container that was started by hand, marked as the one that holds the GPU."""
    name = f"{lane.name}-of-somebody"
    docker("run", "--detach", "--name", name, "--label", "gpu-lane=1", "--entrypoint", "sleep", lane.image, "600")
    return name


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="left out: nvidia-smi is on this machine")
def test_somebody_elses_lane_is_on_the_gpu(program: Program, lane: DockerLane, docker: Docker, stranger: str) -> None:
    pid, started = docker("inspect", "--format", "{{.State.Pid}} {{.State.StartedAt}}", stranger).split()
    nvidia_smi = program.home / "bin" / "nvidia-smi"
    write_nvidia_smi(nvidia_smi, 200_000, f"{pid}, 200000 MiB, GPU-300, sleep\n")
    kept, since = docker("inspect", "--format", KEPT, stranger), now(docker)
    moment = f"{started[:10]} {started[11:19]}Z"
    facts = f"{stranger} (image {lane.image}), running since {moment}"
    for words in ((), ("--replace",), ("--show-steps",)):
        refused = program.run("up", "v2", *words)
        assert (refused.code, refused.out, refused.err.splitlines()[-2:]) == (
            6,
            "",
            [
                f"gb300serve: a container that gb300serve did not create uses the GPU: {facts}; "
                "it holds 195.3 GiB of the GPU's memory; it is never stopped for you",
                f"  hint: docker stop {stranger}",
            ],
        )
    status = program.run("status")
    assert f"{stranger}: gb300serve did not create it (image {lane.image}); it holds 195.3 GiB" in status.out
    (told,) = program.run("status", "--json").document["lanes"]
    assert [told[key] for key in ("state", "container", "image", "since")] == [
        "foreign", stranger, lane.image, moment.replace(" ", "T"),
    ]  # fmt: skip
    assert told["health"]["gpu_memory"] == 200_000 * 1024**2

    nvidia_smi.unlink()
    refused = program.run("up", "v2")
    assert refused.code == 6
    assert "its memory it holds was not checked (nvidia-smi is not on PATH)" in refused.err.replace("the GPU's", "its")
    assert docker("inspect", "--format", KEPT, stranger) == kept
    assert happened(docker, since) == []

    docker("rm", "--force", stranger)
    may = program.run("up", "v2", "--show-steps")
    assert may.code == 0, may.err
    assert "not checked: whether another process uses the GPU (nvidia-smi is not on PATH)" in may.err


@contextmanager
def listening(port: int, address: str) -> Iterator[str]:
    """`python3 -m http.server` there; its name and number as a refusal tells them."""
    words = (sys.executable, "-m", "http.server", str(port), "--bind", address)
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1" if "." in address else "::1", port)).close()
                    break
                except OSError:
                    assert process.poll() is None
                    time.sleep(0.02)
            name = Path(f"/proc/{process.pid}/comm").read_text().strip()
            yield f"{name}, process {process.pid}"
        finally:
            process.kill()


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "::"])
def test_the_port_is_taken(program: Program, lane: DockerLane, docker: Docker, address: str) -> None:
    """On the host's network and of a mapping; also before anybody misses the image."""
    port = int(str(lane.options["port"]))
    bridged = {"network": None, "ports": [f"{port}:8000"]}
    replace(lane, container=lane.container | bridged).write("v3", port=8000)
    replace(lane, image=f"{lane.image[:-8]}00000000").write("v4")
    since, there = now(docker), docker("ps", "--all", "--quiet")
    with listening(port, address) as who:
        finding = f"port {port} is taken: {who} listens on {address}"
        for release in ("v2", "v3", "v4"):
            refused = program.run("up", release)
            assert (refused.code, refused.err.splitlines()[-2:]) == (
                6,
                [
                    f"gb300serve: {finding}",
                    f"  hint: stop that program, or use another port; to identify it: ss -ltnp 'sport = :{port}'",
                ],
            )
            found = program.run("doctor", release, "--json")
            assert found.code == 6
            assert finding in [each["message"] for each in found.document["diagnostics"] if each["code"] == "PRE071"]
    assert happened(docker, since) == []
    assert docker("ps", "--all", "--quiet") == there
    assert json.loads(program.run("status", "--json").out)["lanes"] == []
