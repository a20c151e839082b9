"""Following a log while the Docker Engine goes away and comes back, on an Engine of this test's own."""

import os
import signal
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from gb300serve.plan.model import ContainerPlan, Plan
from tests.support.backend_contract import EVERY, texts
from tests.support.command import run
from tests.support.docker_engine import watched_docker
from tests.support.station import STATION, Importer

pytestmark = pytest.mark.docker

IMAGE = "vllm/vllm-openai:restart-tests"
COUNT = "i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo $i; sleep 0.01; done"


@pytest.fixture
def directory(sim_image: Importer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An Engine whose containers outlive it. `sim_image` is asked for only because it says whether there may be one."""
    directory = tmp_path_factory.mktemp("engine")
    run(str(STATION), "up", str(directory), "--live-restore")
    yield directory
    run(str(STATION), "down", str(directory))


def restart(directory: Path) -> None:
    """As an upgrade of the Engine does."""
    pid_file = directory / "docker.pid"
    os.kill(int(pid_file.read_text()), signal.SIGTERM)
    for _ in range(300):
        if not pid_file.exists():
            break
        time.sleep(0.1)
    run(str(STATION), "up", str(directory), "--live-restore")


def test_no_line_is_lost_or_told_twice(directory: Path) -> None:
    run(str(STATION), "image", "sim", IMAGE, str(directory))
    container = ContainerPlan("lane", network="host", entrypoint="/bin/sh")
    plan = Plan("l/r", "l", "r", "vllm", None, IMAGE, None, container, ("-c", COUNT), ("m",), None, None)
    backend = watched_docker(f"unix://{directory}/docker.sock")
    backend.create(plan, {}, {})
    backend.start("lane")
    followed = texts(backend.follow("lane", EVERY))
    seen = list(islice(followed, 20))
    restart(directory)
    seen += followed
    assert seen == [str(number) for number in range(1, 401)]
