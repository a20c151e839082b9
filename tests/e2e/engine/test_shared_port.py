"""Two real servers on one port of the host: both start without an error, and only one of them answers."""

import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.docker_recipe import DockerLane
from tests.support.program import Program
from tests.support.real_engine import PATIENCE, REFERENCE, answer, lanes, said_at_last, said_until
from tests.support.station import Docker

pytestmark = [pytest.mark.docker, pytest.mark.engine]


def listening(port: object) -> bool:
    """Whether a server says that it is well."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10.0):
            return True
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def stranger(docker: Docker, lane: DockerLane, cache: Path) -> str:
    """The same server with the same name on the same port of the host, of a line that somebody pasted; its name."""
    name = f"{lane.name}-stranger"
    docker(
        "run", "--detach", "--name", name, "--ipc", "host", "--network", "host", "--volume", f"{lane.model}:/model:ro",
        "--volume", f"{cache}:/root/.cache/vllm", "--env", "VLLM_CPU_KVCACHE_SPACE=1", REFERENCE,
        "--model", "/model", "--served-model-name", "tiny", "--max-model-len", "4096", "--enforce-eager",
        "--port", str(lane.options["port"]),
    )  # fmt: skip
    return name


def pause(docker: Docker, name: str) -> None:
    """The kernel freezes no process while it waits for a loaded disk."""
    for _ in range(10):
        with suppress(AssertionError):
            docker("pause", name)
            return
        time.sleep(1.0)
    docker("pause", name)


# Two boots: 40 s. Ours has bound the port and is paused until the other one, which binds it too, listens.
def test_two_servers_on_one_port(
    engine_program: Program, engine_lane: DockerLane, docker: Docker, engine_cache: Path
) -> None:
    port = engine_lane.options["port"]
    engine_lane.write("v1")
    booting = engine_program.start("up", "v1")
    said = said_until(booting, "Using max model len")
    pause(docker, engine_lane.name)
    other = stranger(docker, engine_lane, engine_cache)
    deadline = time.monotonic() + PATIENCE
    while not listening(port):
        assert time.monotonic() < deadline, docker("logs", other)
        time.sleep(0.5)
    found = lanes(engine_program)["v1"]
    assert found["state"] != "ready"
    docker("unpause", engine_lane.name)
    said += said_at_last(booting)
    assert booting.returncode == 8, said
    assert "READY: " not in said
    assert f"another server answers at http://127.0.0.1:{port}" in said
    assert answer(engine_lane)["model"] == "tiny", "the other one was left alone"
    (status,) = (each for each in lanes(engine_program).values() if each["container"].startswith(engine_lane.name))
    assert (status["state"], "-failed-" in status["container"]) == ("failed", True)

    docker("restart", "--time", "1", other)  # for some seconds it holds the port, and does not listen
    refused = engine_program.run("up", "v1")
    assert refused.code == 6, refused.err
    assert f"port {port} is taken by container {other} " in refused.err
    assert "on the host's network" in refused.err
