import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gb300serve.adapters.docker.backend import DockerBackend
from gb300serve.adapters.docker.client import DockerEndpoint, DockerEngine
from gb300serve.adapters.system import SystemClock
from gb300serve.plan.model import Mount
from tests.e2e.docker.test_backend import shell_plan
from tests.support.backend_contract import EVERY, LABELS, texts
from tests.support.station import Importer

pytestmark = pytest.mark.docker

BARS = (
    "trap 'exit 0' TERM; echo begun; "
    "for i in 1 2 3 4 5 6 7 8 9; do printf '\\rTuning: %s0%%' $i >&2; sleep 0.1; done; "
    "printf '\\rTuning: 100%%\\n' >&2; while :; do sleep 0.05; done"
)
BUSY = "trap 'exit 0' TERM; echo begun; while :; do :; done"


@pytest.fixture(scope="session")
def image(sim_image: Importer) -> str:
    reference = "vllm/vllm-openai:watch-tests"
    sim_image(reference)
    return reference


@pytest.fixture
def docker_engine(docker_host: str) -> DockerBackend:
    return DockerBackend(DockerEngine(DockerEndpoint.choose(docker_host, None)), SystemClock())


@pytest.fixture
def running(
    docker_engine: DockerBackend, container_name: str, image: str, request: pytest.FixtureRequest
) -> Iterator[str]:
    """A container that runs the script that the test names."""
    docker_engine.create(shell_plan(container_name, image, request.param), LABELS, {})
    docker_engine.start(container_name)
    yield container_name
    docker_engine.stop(container_name, 1.0)


@pytest.mark.parametrize("running", [BUSY], indirect=True)
def test_its_processes_by_the_numbers_of_the_host(docker_engine: DockerBackend, running: str) -> None:
    (pid,) = docker_engine.processes(running)
    assert "done" in Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.parametrize("running", [BARS], indirect=True)
def test_bars_are_seen_before_the_log_has_them_and_the_log_has_each_line_once(
    docker_engine: DockerBackend, running: str
) -> None:
    seen: list[str] = []
    logged: list[str] = []
    attached = docker_engine.bars(running)
    assert attached is not None
    with attached as bars:
        for line in docker_engine.follow(running, EVERY):
            seen += bars.fresh()
            if line is not None:
                logged.append(line.text)
            if "Tuning: 100%" in logged:
                break
    assert seen
    assert set(seen) <= {f"Tuning: {share}0%" for share in range(1, 10)}
    assert seen == sorted(seen)
    assert logged == ["begun", *(f"Tuning: {share}0%" for share in range(1, 11))]


@pytest.mark.parametrize("running", [BUSY], indirect=True)
def test_cpu_time_grows_where_something_computes(docker_engine: DockerBackend, running: str) -> None:
    next(texts(docker_engine.follow(running, EVERY)))
    first = docker_engine.vitals(running)
    assert first.cpu_seconds is not None
    assert (first.gpu, first.restarts) == (None, 0)
    later = (docker_engine.vitals(running).cpu_seconds or 0.0 for _ in itertools.repeat(None, 1000))
    assert any(seconds > first.cpu_seconds for seconds in later)


def test_files_are_read_as_the_container_sees_them(
    docker_engine: DockerBackend, container_name: str, image: str, tmp_path: Path
) -> None:
    (tmp_path / "hook.py").write_bytes(b"pass\n")
    (tmp_path / "link.py").symlink_to("hook.py")
    base = shell_plan(container_name, image, "trap 'exit 0' TERM; while :; do sleep 0.05; done")
    mounts = (Mount(str(tmp_path), "/w", read_only=True),)
    docker_engine.create(replace(base, container=replace(base.container, mounts=mounts)), LABELS, {})
    docker_engine.start(container_name)
    digest = hashlib.sha256(b"pass\n").hexdigest()
    assert docker_engine.file_sha256(container_name, "/w/hook.py") == digest
    assert docker_engine.file_sha256(container_name, "/w/link.py") == digest
    assert docker_engine.file_sha256(container_name, "/w/none.py") is None
    assert docker_engine.file_sha256(container_name, "/w") is None
    docker_engine.stop(container_name, 1.0)


@pytest.mark.parametrize("running", [BUSY], indirect=True)
def test_without_py_spy_there_is_no_stack_but_a_command(docker_engine: DockerBackend, running: str) -> None:
    assert docker_engine.stacks(running) is None
    assert docker_engine.stack_command(running).startswith(f"docker exec {running} py-spy dump --pid 1")
