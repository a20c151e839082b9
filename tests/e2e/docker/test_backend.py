import dataclasses
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gb300serve.adapters.docker.backend import LABEL_CHECK
from gb300serve.adapters.docker.client import DockerEndpoint, DockerEngine
from gb300serve.core.errors import BackendError
from gb300serve.lifecycle.backend import ContainerBackend
from gb300serve.plan.model import ContainerPlan, Mount, Plan
from tests.support.backend_contract import EVERY, LABELS, BackendContract, texts
from tests.support.docker_context import write_context
from tests.support.docker_engine import watched_docker
from tests.support.ssh import ssh_stand_in
from tests.support.station import Docker, Importer

pytestmark = pytest.mark.docker

SERVES = "trap 'exit 0' TERM; echo one; echo two >&2; echo three; while :; do sleep 0.05; done"


def shell_plan(name: str, image: str, script: str) -> Plan:
    container = ContainerPlan(
        name,
        gpus="all",
        ipc="host",
        network="host",
        ulimits={"memlock": -1},
        cap_add=("IPC_LOCK",),
        env={"MODE": "split"},
        entrypoint="/bin/sh",
    )
    return Plan("l/r", "l", "r", "vllm", None, image, None, container, ("-c", script), ("m",), None, None)


@pytest.fixture(scope="session")
def image(sim_image: Importer) -> str:
    reference = "vllm/vllm-openai:backend-tests"
    sim_image(reference)
    return reference


@pytest.fixture
def backend(docker_host: str, container_name: str) -> ContainerBackend:
    return watched_docker(docker_host)


class TestContract(BackendContract):
    @pytest.fixture
    def backend(self, docker_host: str, container_name: str) -> ContainerBackend:
        return watched_docker(docker_host)

    @pytest.fixture
    def plan(self, container_name: str, image: str) -> Plan:
        return shell_plan(container_name, image, SERVES)

    @pytest.fixture
    def failing_plan(self, container_name: str, image: str) -> Plan:
        return shell_plan(f"{container_name}-b", image, "echo one; echo two; exit 3")


def started(backend: ContainerBackend, name: str, image: str, script: str) -> str:
    backend.create(shell_plan(name, image, script), LABELS, {})
    backend.start(name)
    return name


def test_progress_bars_long_lines_and_a_last_line_without_line_feed(
    backend: ContainerBackend, container_name: str, image: str
) -> None:
    script = r"printf '10%%\r50%%\r100%%\n\n'; head -c 40000 /dev/zero | tr '\0' x; echo; printf end"
    started(backend, container_name, image, script)
    followed = list(texts(backend.follow(container_name, EVERY)))
    assert followed == ["10%", "50%", "100%", "", "x" * 40000, "end"]


def test_both_streams(backend: ContainerBackend, container_name: str, image: str) -> None:
    started(backend, container_name, image, "echo out; sleep 0.2; echo err >&2")
    lines = [line for line in backend.follow(container_name, EVERY) if line is not None]
    assert [(line.text, line.stream) for line in lines] == [("out", "stdout"), ("err", "stderr")]


def test_an_engine_that_ignores_the_signal_is_killed(
    backend: ContainerBackend, container_name: str, image: str
) -> None:
    started(backend, container_name, image, "trap '' TERM; echo deaf; while :; do sleep 0.05; done")
    assert next(texts(backend.follow(container_name, EVERY))) == "deaf"
    backend.stop(container_name, 0.2)
    found = backend.find(container_name)
    assert found is not None
    assert (found.state, found.exit_code) == ("exited", 137)


def test_what_cannot_be_started_stays_with_its_reason(
    backend: ContainerBackend, container_name: str, image: str, docker: Docker
) -> None:
    plan = shell_plan(container_name, image, "")
    plan = dataclasses.replace(plan, container=dataclasses.replace(plan.container, entrypoint="/no/such/program"))
    backend.create(plan, LABELS, {})
    with pytest.raises(BackendError, match="no such file") as refused:
        backend.start(container_name)
    found = backend.find(container_name)
    assert found is not None
    assert (found.state, found.exit_code) == ("created", 127)
    assert found.error in str(refused.value)


def test_a_log_that_is_no_longer_read_is_let_go(backend: ContainerBackend, container_name: str, image: str) -> None:
    started(backend, container_name, image, "while :; do echo line; done")
    followed = backend.follow(container_name, EVERY)
    assert list(itertools.islice(texts(followed), 5000)) == ["line"] * 5000
    assert isinstance(followed, Iterator)
    del followed
    backend.stop(container_name, 0.0)


def test_an_image_is_found_by_every_kind_of_reference(
    backend: ContainerBackend, docker: Docker, pinned_image: Importer
) -> None:
    reference = pinned_image("references")
    tagged, _, digest = reference.partition("@")
    repository = tagged.rpartition(":")[0]
    found = backend.image(tagged)
    assert found is not None
    assert found.digests == (f"{repository}@{digest}",)
    assert found.entrypoint == ("vllm", "serve")
    assert [backend.image(name) for name in (reference, found.id, f"{repository}@{digest}")] == [found] * 3
    assert backend.image(f"{tagged}@sha256:{'0' * 64}") is None


def test_a_container_of_an_image_by_digest(
    backend: ContainerBackend, container_name: str, pinned_image: Importer
) -> None:
    reference = pinned_image("by-digest")
    backend.create(shell_plan(container_name, reference, "true"), LABELS, {})
    found, image = backend.find(container_name), backend.image(reference)
    assert found is not None
    assert image is not None
    assert (found.image, found.image_id) == (reference, image.id)


def test_a_check_that_was_killed_is_cleared_away(
    backend: ContainerBackend, container_name: str, image: str, docker: Docker
) -> None:
    docker("create", "--name", f"{container_name}-check", "--label", LABEL_CHECK, image, "true")
    assert backend.find(f"{container_name}-check") not in backend.containers()
    plan = shell_plan(container_name, image, "true")
    with_mount = dataclasses.replace(plan.container, mounts=(Mount("/", "/host"),))
    assert backend.missing_sources(dataclasses.replace(plan, container=with_mount)) == ()
    assert backend.find(f"{container_name}-check") is None


def test_a_context_by_name(docker_host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    write_context(tmp_path, "station", docker_host)
    watched_docker(None, "station").check()


def test_through_ssh(docker: Docker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no ssh server here: a stand-in on PATH runs the last words, as ssh does on the other machine."""
    asked = ssh_stand_in(tmp_path, {"station": docker.host})
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    backend = watched_docker("ssh://me@station")
    backend.check()
    assert backend.find("no-such-container") is None
    said = set(asked.read_text().splitlines())
    assert said == {"-o ConnectTimeout=30 -T -o BatchMode=yes -l me -- station docker system dial-stdio"}


def test_the_engine_speaks_its_own_words(docker_host: str) -> None:
    engine = DockerEngine(DockerEndpoint(docker_host))
    assert engine.get("/version")["ApiVersion"]
