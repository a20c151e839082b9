"""The main job on a real Docker Engine, with the simulated engine as entrypoint."""

import shutil
import time
from pathlib import Path

import pytest

from tests.support.aftermath import Aftermath, DockerPlace
from tests.support.checkpoints import write_whole
from tests.support.docker_recipe import DockerLane
from tests.support.forked import Forked
from tests.support.long import LONG
from tests.support.program import Program
from tests.support.station import Docker, Importer

pytestmark = pytest.mark.docker

DAY_ZERO = "0.1.dev20904+g179dd0fa9"
SIMULATED = {
    "model": "/model",
    "served_model_name": "bench",
    "tensor_parallel_size": 1,
    "offload_backend": "uva",
    "cpu_offload_gb": 60,
    "cpu_offload_params": ["routed_experts.w13_weight", "routed_experts.w2_weight"],
    "engram_config": {"cpu_offload": True},
    "max_model_len": 131072,
    "max_num_seqs": 8,
}


@pytest.fixture
def program(tmp_path: Path) -> Forked:
    return Forked(tmp_path, {"GB300SERVE_SITE": str(tmp_path / "site.yaml")})


@pytest.fixture
def lane(tmp_path: Path, docker_host: str, pinned_image: Importer, container_name: str, free_port: int) -> DockerLane:
    model = write_whole(tmp_path / "models" / "workbench")
    found = DockerLane(
        tmp_path, docker_host, pinned_image("workbench"), container_name,
        SIMULATED | {"port": free_port}, DAY_ZERO, model, {"GB300SERVE_SIM_SPEED": "8000"},
    )  # fmt: skip
    found.site()
    found.write("v1")
    return found


def test_up_status_logs_down(program: Program, lane: DockerLane, docker: Docker) -> None:
    program = Program(program.home, program.variables)  # each command a fresh process
    up = program.up_until_ready("v1")
    assert up.code == 130, up.err
    assert "READY: bench answers" in up.err
    (status,) = program.run("status", "--json", "--on", "docker").document["lanes"]
    assert (status["state"], status["release"], status["on"], status["drift"]) == ("ready", "v1", "docker", [])
    assert docker("inspect", "--format", "{{.HostConfig.RestartPolicy.Name}}", lane.name) == "unless-stopped"
    assert program.run("logs", "--tail", "3").out.count("\n") == 3
    assert "already serves" in program.run("up", "v1").err

    lane.write("v2", max_num_seqs=4)
    other = program.run("up", "v2")
    assert (other.code, "workbench/v1" in other.err) == (6, True)

    down = program.run("down")
    assert (down.code, "kept" in down.err) == (0, True)
    (status,) = program.run("status", "--json", "--on", "docker").document["lanes"]
    assert status["state"] == "stopped"
    again = program.up_until_ready("v1")
    assert "the kept container" in again.err
    removed = program.run("down", "--remove")
    assert removed.code == 0
    assert docker("ps", "--all", "--quiet", "--filter", f"name={lane.name}") == ""


def test_a_missing_mount_source_is_refused_and_not_created(program: Program, lane: DockerLane) -> None:
    shutil.rmtree(lane.model)
    up = program.run("up", "v1")
    assert (up.code, str(lane.model) in up.err) == (6, True)
    assert not lane.model.exists()


def test_an_absent_image_is_never_pulled(program: Program, lane: DockerLane, docker: Docker) -> None:
    docker("image", "rm", "--force", docker("image", "inspect", "--format", "{{.Id}}", lane.image))
    up = program.run("up", "v1")
    assert (up.code, "docker pull" in up.err) == (6, True)


def test_a_failed_boot_is_kept_under_another_name(program: Program, lane: DockerLane, docker: Docker) -> None:
    lane.write("v3", cpu_offload_params=["experts.w13_weight"])
    up = program.run("up", "v3")
    assert up.code == 8, up.err
    assert "OutOfMemoryError" in up.err
    assert docker("ps", "--all", "--format", "{{.Names}}", "--filter", f"name={lane.name}").startswith(
        f"{lane.name}-failed-"
    )


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9] if LONG else [0.3, 0.7])
def test_killed_at_any_moment_of_replacing_another_release(
    program: Forked, lane: DockerLane, docker: Docker, share: float
) -> None:
    url = f"http://127.0.0.1:{lane.options['port']}"
    place = DockerPlace(docker, lane.name)
    began = time.monotonic()
    assert program.up_until_ready("v1").code == 130
    span = time.monotonic() - began
    lane.write("v2", max_num_seqs=4)
    after = Aftermath(program, place, program.home / ".local" / "state" / "gb300serve", place.containers())
    program.killed_after(share * span, "up", "v2", "--replace")
    after.judge()
    after.judge_status()
    after.judge_up(program.up_until_ready("v2", "--replace"), "v2", url)
    after.judge_up(program.run("rollback"), "v1", url)
    after.judge_down(program.run("down"))
