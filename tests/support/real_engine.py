"""The real vLLM for the CPU as a lane on the test's Docker Engine, and what a test does to it from outside.

One boot takes 18 s on two quiet cores (25 s of CPU time; eager, with a cache of model classes), an early failure 8 s
(10 s of CPU time). All tests with it together take about 400 s of CPU time. What a comment at a test says is for two
quiet cores.
"""

import json
import os
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.docker_recipe import DockerLane
from tests.support.forked import Forked
from tests.support.processes import descendants
from tests.support.program import Program, wait_for_end
from tests.support.station import Docker, Importer

REFERENCE = "vllm/vllm-openai:workbench-cpu"
OPTIONS: dict[str, object] = {
    "model": "/model",
    "served_model_name": "tiny",
    "max_model_len": 4096,
    "max_num_seqs": 4,
    "enforce_eager": True,
}
# Far beyond what anything takes: it ends a test that would hang, and decides nothing.
PATIENCE = 400.0


@pytest.fixture(scope="session")
def engine_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model classes, inspected once (6 s) for all tests of this process."""
    return tmp_path_factory.mktemp("vllm-cache")


@pytest.fixture
def engine_program(tmp_path: Path) -> Iterator[Program]:
    found = Forked(tmp_path, {"GB300SERVE_SITE": str(tmp_path / "site.yaml")})
    yield found
    found.run("down", "--timeout", "1")


@pytest.fixture
def engine_lane(
    tmp_path: Path, docker_host: str, engine_image: Importer, engine_model: Path, engine_cache: Path,
    container_name: str, free_port: int,
) -> DockerLane:  # fmt: skip
    """Without a restart policy: what has died stays dead."""
    engine_image(REFERENCE)
    lane = DockerLane(
        tmp_path, docker_host, REFERENCE, container_name, OPTIONS | {"port": free_port}, "0.32.0", engine_model,
        {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"},
        {"restart": "no", "mounts": [{"source": str(engine_cache), "target": "/root/.cache/vllm"}]},
    )  # fmt: skip
    lane.site()
    return lane


def said_until(process: subprocess.Popen[str], *words: str) -> str:
    """What it says on stderr up to the first line with one of the words; the test fails when it ends before."""
    assert process.stderr is not None
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    said = []
    try:
        for line in process.stderr:
            said.append(line)
            if any(word in line for word in words):
                return "".join(said)
    finally:
        watchdog.cancel()
    process.communicate()
    pytest.fail(f"it ended before it said {' or '.join(words)}:\n{''.join(said)}")


def said_at_last(process: subprocess.Popen[str]) -> str:
    """The rest of its stderr, once it has ended."""
    return wait_for_end(process, PATIENCE)[1]


def processes(docker: Docker, container: str, title: str = "") -> list[int]:
    """Ids on this machine of the container's processes whose title has the word, the first process first."""
    lines = docker("top", container, "-eo", "pid,args").splitlines()[1:]
    found = sorted(int(line.split()[0]) for line in lines if title in line)
    first = int(docker("inspect", "--format", "{{.State.Pid}}", container))
    return sorted(found, key=lambda each: each != first)


def kill(docker: Docker, container: str, title: str) -> None:
    """kill -9 of what has the word in its title, as soon as there is one."""
    deadline = threading.Event()
    watchdog = threading.Timer(PATIENCE, deadline.set)
    watchdog.start()
    while not (found := processes(docker, container, title)):
        assert not deadline.wait(0.1), f"no {title} in {container}"
    watchdog.cancel()
    for each in found:
        os.kill(each, signal.SIGKILL)


def hold(docker: Docker, container: str, text: str) -> None:
    """Keep the engine where its log says the text: every process but the first, which stays able to take signals.

    By the log itself and without a question to Docker in between: a tiny model's phase is over in half a second.
    """
    first = int(docker("inspect", "--format", "{{.State.Pid}}", container))
    words = ("docker", "--host", docker.host, "logs", "--follow", container)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as log:
        assert log.stdout is not None
        watchdog = threading.Timer(PATIENCE, log.kill)
        watchdog.start()
        held = any(text in line for line in log.stdout)
        for each in descendants(first) if held else ():
            os.kill(each, signal.SIGSTOP)
        watchdog.cancel()
        log.kill()
    assert held, f"{container} never said {text}"


def answer(lane: DockerLane) -> dict[str, Any]:
    """What the model says to four tokens' worth of chat."""
    asked = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4, "temperature": 0}
    request = urllib.request.Request(
        f"http://127.0.0.1:{lane.options['port']}/v1/chat/completions",
        json.dumps(asked).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        found: dict[str, Any] = json.load(response)
    return found


def lanes(program: Program) -> dict[str, dict[str, Any]]:
    """By release."""
    return {each["release"]: each for each in program.run("status", "--json", "--on", "docker").document["lanes"]}


def entries(program: Program) -> list[tuple[str, str]]:
    told = program.run("journal", "--json").document["entries"]
    return [(each["verb"], each["result"]) for each in told]
