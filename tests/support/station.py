"""The real parts that scripts/station prepares, as fixtures. `eval "$(scripts/station env)"` tells where they are.

A test that asks for a part that is not there is left out; with GB300SERVE_TEST_ALL=1 it fails.
"""

import os
import secrets
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.command import complete, run

ROOT = Path(__file__).parents[2]
STATION = ROOT / "scripts" / "station"


def part(variable: str, what: str) -> str:
    """The value of the variable; leaves the test out, or fails it, where there is none."""
    value = os.environ.get(variable, "")
    if value:
        return value
    missing = f"{what} ({variable} is not set: see scripts/station)"
    if os.environ.get("GB300SERVE_TEST_ALL"):
        pytest.fail(f"needs {missing}")
    pytest.skip(f"left out: needs {missing}")


@dataclass(frozen=True, slots=True)
class Docker:
    """Docker's own client, speaking to the test's Engine."""

    host: str

    def __call__(self, *words: str, secrets: dict[str, str] | None = None) -> str:
        """Its standard output without the last line feed; the test fails when it fails."""
        return run("docker", *words, env={"DOCKER_HOST": self.host, **(secrets or {})}).strip()

    def refused(self, *words: str) -> str:
        """What it says when it fails, as it must."""
        done = complete("docker", *words, env={"DOCKER_HOST": self.host})
        assert done.returncode != 0, done.stdout
        return done.stderr.strip()


@pytest.fixture(scope="session")
def station_directory() -> Iterator[Path]:
    """Where the Docker Engine and the registry of this test process lie.

    A lane refuses to start beside another that holds the GPU, so tests that run side by side need an Engine each.
    """
    directory = Path(part("GB300SERVE_TEST_STATION", "the Docker Engine"))
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        yield directory
        return
    own = directory / "workers" / worker
    run(str(STATION), "up", str(own))
    yield own
    run(str(STATION), "down", str(own))


@pytest.fixture(scope="session")
def docker_host(station_directory: Path) -> str:
    """`unix://…` of the test's Engine."""
    return f"unix://{station_directory}/docker.sock"


@pytest.fixture(scope="session")
def docker(docker_host: str) -> Docker:
    return Docker(docker_host)


@pytest.fixture(scope="session")
def registry(station_directory: Path) -> str:
    """`127.0.0.1:PORT` of the test's registry."""
    return (station_directory / "registry.address").read_text().strip()


@pytest.fixture(scope="session")
def engine_model() -> Path:
    """The tiny model that the real vLLM serves."""
    return Path(part("GB300SERVE_TEST_MODEL", "the tiny model"))


Importer = Callable[[str], str]


@pytest.fixture(scope="session")
def sim_image(station_directory: Path) -> Importer:
    """`sim_image("repository:tag")` imports an image whose `vllm serve` is the simulated engine; returns its id."""
    return lambda reference: _import("sim", reference, station_directory)


@pytest.fixture(scope="session")
def engine_image(station_directory: Path) -> Importer:
    """The same with the real vLLM for the CPU."""
    part("GB300SERVE_TEST_ENGINE", "vLLM for the CPU")
    return lambda reference: _import("engine", reference, station_directory)


def _import(kind: str, reference: str, directory: Path) -> str:
    return run(str(STATION), "image", kind, reference, str(directory)).strip()


@pytest.fixture(scope="session")
def pinned_image(docker: Docker, registry: str, sim_image: Importer) -> Importer:
    """`pinned_image("tag")` pushes the simulated engine's image and pulls it by digest.

    Returns `127.0.0.1:PORT/vllm/vllm-openai:tag@sha256:…`: an image that was only imported has no digest.
    """

    def pin(tag: str) -> str:
        reference = f"{registry}/vllm/vllm-openai:{tag}"
        sim_image(reference)
        docker("push", "--quiet", reference)
        pushed = docker("image", "inspect", "--format", "{{index .RepoDigests 0}}", reference)
        digest = pushed.partition("@")[2]
        docker("image", "rm", reference)
        docker("pull", "--quiet", f"{registry}/vllm/vllm-openai@{digest}")
        docker("tag", f"{registry}/vllm/vllm-openai@{digest}", reference)
        return f"{reference}@{digest}"

    return pin


@pytest.fixture
def container_name(docker: Docker) -> Iterator[str]:
    """A name that no other test uses. Whatever the Engine has under names that begin with it is removed afterwards."""
    name = f"gb300test-{secrets.token_hex(4)}"
    yield name
    left = docker("ps", "--all", "--quiet", "--filter", f"name=^/{name}").split()
    if left:
        docker("rm", "--force", "--volumes", *left)


@pytest.fixture
def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def part_program(name: str, what: str) -> str:
    """The program's path; leaves the test out, or fails it, where there is none."""
    found = shutil.which(name)
    if found:
        return found
    missing = f"{what} (`{name}` is not installed: see scripts/station)"
    if os.environ.get("GB300SERVE_TEST_ALL"):
        pytest.fail(f"needs {missing}")
    pytest.skip(f"left out: needs {missing}")
