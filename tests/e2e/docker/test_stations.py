"""Two Stations: two Docker Engines on this machine, one of them behind a stand-in for ssh."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from gb300serve.recipe.write import to_yaml
from tests.e2e.docker.test_lanes import DAY_ZERO, SIMULATED
from tests.support.checkpoints import write_whole
from tests.support.command import run
from tests.support.docker_recipe import DockerLane
from tests.support.forked import Forked
from tests.support.program import Program
from tests.support.ssh import ssh_stand_in
from tests.support.station import STATION, Docker, Importer

pytestmark = pytest.mark.docker

IMAGE = "workbench/engine:stations"


@pytest.fixture(scope="module")
def west(station_directory: Path) -> Iterator[Docker]:
    """A second Engine."""
    # Beside the first one: the path of a socket has 107 bytes at most, and containerd's lies deep.
    own = station_directory.with_name(f"{station_directory.name}w")
    run(str(STATION), "up", str(own))
    run(str(STATION), "image", "sim", IMAGE, str(own))
    yield Docker(f"unix://{own}/docker.sock")
    run(str(STATION), "down", str(own))


@pytest.fixture
def lane(tmp_path: Path, docker_host: str, sim_image: Importer, container_name: str, free_port: int) -> DockerLane:
    model = write_whole(tmp_path / "models" / "workbench")
    sim_image(IMAGE)
    found = DockerLane(
        tmp_path, docker_host, IMAGE, container_name, SIMULATED | {"port": free_port}, DAY_ZERO, model,
        {"GB300SERVE_SIM_SPEED": "8000"},
    )  # fmt: skip
    found.write("v1")
    return found


@pytest.fixture
def program(tmp_path: Path, lane: DockerLane, west: Docker) -> Iterator[Program]:
    """The site has east on a socket, west and dead behind ssh; the machine itself has no Engine."""
    for name in ("east-cache", "west-cache"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin").mkdir()
    ssh_stand_in(tmp_path / "bin", {"west.example": west.host})
    stations = {
        "east": {"docker": {"host": lane.host}, "cache": str(tmp_path / "east-cache")},
        "west": {
            "docker": {"host": "ssh://me@west.example"}, "cache": str(tmp_path / "west-cache"), "address": "127.0.0.1",
        },
        "dead": {"docker": {"host": "ssh://me@dead.example"}},
    }  # fmt: skip
    site = {"format": "gb300serve.site/1", "default_lane": "workbench", "stations": stations}
    (tmp_path / "site.yaml").write_text(to_yaml(site))
    variables = {
        "GB300SERVE_SITE": str(tmp_path / "site.yaml"),
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "DOCKER_HOST": f"unix://{tmp_path}/none.sock",
    }
    yield Forked(tmp_path, variables)
    left = west("ps", "--all", "--quiet").split()
    if left:
        west("rm", "--force", *left)


def other_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def everywhere(program: Program) -> tuple[int, dict[str, tuple[str, str]], dict[str | None, bool]]:
    """Exit code, state and release by Station, and who answered."""
    status = program.run("status", "--all", "--json")
    found = status.document
    lanes = {one["station"]: (one["state"], one["release"]) for one in found["lanes"]}
    return status.code, lanes, {one["station"]: one["error"] is None for one in found["stations"]}


def verbs(program: Program, *words: str) -> list[tuple[str, str | None]]:
    """Verb and Station of each entry of the journal."""
    entries = program.run("journal", "--json", *words).document["entries"]
    return [(each["verb"], each["station"]) for each in entries]


def test_one_model_on_two_stations(program: Program, lane: DockerLane, west: Docker, docker: Docker) -> None:
    """The text of `compile`, pasted on both: the engine's own way to find the other one."""
    lane.write("v2", pipeline_parallel_size=2)
    recipe = program.home / "recipes/workbench/v2.yaml"
    recipe.write_text(recipe.read_text().replace("container:", "nodes: 2\ncontainer:", 1))
    plan = program.run("compile", "v2", "--json", "--station", "east").document
    refused = program.run("up", "v2", "--station", "east")
    assert (refused.code, "runs on 2 Stations at once" in refused.err) == (4, True), refused.err
    text = program.run("compile", "v2", "--station", "east").out
    for rank, engine in enumerate((docker, west)):
        place = {"NODE_RANK": str(rank), "LEADER_ADDRESS": "10.0.0.1", "VLLM_HOST_IP": f"10.0.0.{rank + 1}"}
        run("sh", "-c", text, env={"DOCKER_HOST": engine.host, **place})
        argv = plan["nodes"][rank]["argv"]
        wanted = [word.replace("${LEADER_ADDRESS}", "10.0.0.1").replace("${NODE_RANK}", "1") for word in argv]
        given = json.loads(engine("inspect", "--format", "{{json .Config.Cmd}}", lane.name))
        assert given == wanted[wanted.index(IMAGE) + 1 :]
        env = json.loads(engine("inspect", "--format", "{{json .Config.Env}}", lane.name))
        assert f"VLLM_HOST_IP=10.0.0.{rank + 1}" in env


def test_one_release_on_two_stations(program: Program, lane: DockerLane, west: Docker, docker: Docker) -> None:
    assert "READY: bench answers" in program.up_until_ready("v1", "--station", "east").err
    # Both Engines are on this machine, whose ports they share: between Stations the release would be the same.
    second = program.up_until_ready("v1", "--station", "west", "--set", f"engine.options.port={other_port()}")
    assert "READY: bench answers" in second.err
    for engine, cache in ((docker, "east-cache"), (west, "west-cache")):
        assert str(program.home / cache) in engine("inspect", "--format", "{{.HostConfig.Binds}}", lane.name)

    answered = {None: False, "east": True, "west": True, "dead": False}
    serving = {"east": ("ready", "v1"), "west": ("ready", "v1+set")}
    assert everywhere(program) == (7, serving, answered)
    table = program.run("status", "--all")
    assert "dead     -          -        docker  no answer" in table.out
    why = "no Docker Engine answers at ssh://me@dead.example: ssh: Could not resolve hostname dead.example"
    assert f"  dead: {why}" in table.out.splitlines()
    assert table.err.splitlines()[-1] == "1 of 4 stations did not answer: dead"

    at_west = Forked(program.home, program.variables | {"GB300SERVE_STATION": "west"})
    down = at_west.run("down")
    assert (down.code, "kept" in down.err) == (0, True), down.err
    assert everywhere(program)[1] == {"east": ("ready", "v1"), "west": ("stopped", "v1+set")}
    assert verbs(at_west) == [("up", "west"), ("down", "west")]
    assert verbs(program, "--station", "east") == [("up", "east")]
    facts = at_west.run("doctor", "--json").document["facts"]
    assert facts["memory"]["verdict"] == "not asked"
    assert facts["memory"]["missing"] == "the containers run on ssh://me@west.example: run doctor there"

    site = program.home / "site.yaml"
    site.write_text(site.read_text().replace("ssh://me@west.example", f"unix://{program.home}/gone.sock"))
    answered = {None: False, "east": True, "west": False, "dead": False}
    assert everywhere(program) == (7, {"east": ("ready", "v1")}, answered)
    assert program.run("status", "--station", "west").code == 7
