"""A lane on the test's Docker Engine whose engine, the simulated one, can be made to fail or to say too much."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checkpoints import write_whole
from tests.support.command import complete
from tests.support.docker_recipe import DockerLane
from tests.support.forked import Forked
from tests.support.program import ROOT, Program
from tests.support.station import Docker, Importer

DAY_ZERO = "0.1.dev20904+g179dd0fa9"
OPTIONS: dict[str, object] = {
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
KV_LOG = ROOT / "tests" / "boot" / "logs" / "kv-too-small.log"
# It waits; it fails as soon as it starts, always or once, with a log that vLLM wrote; it says two megabytes first.
ENTRY = f"""\
#!/bin/sh
while [ -e /switch/hold ]; do sleep 0.05; done
[ -e /switch/fail ] && {{ cat {KV_LOG} >&2; exit 1; }}
[ -e /switch/fail-once ] && {{ rm /switch/fail-once; cat {KV_LOG} >&2; exit 1; }}
[ -e /switch/noise ] && {{ i=0; while [ $i -lt 25000 ]; do i=$((i+1)); echo "noise noise noise noise noise noise \
noise noise noise noise noise noise noise $i"; done; }}
exec vllm serve "$@"
"""


@pytest.fixture
def switched_program(tmp_path: Path) -> Iterator[Program]:
    found = Forked(tmp_path, {"GB300SERVE_SITE": str(tmp_path / "site.yaml")})
    yield found
    found.run("down", "--timeout", "0")


@pytest.fixture
def switched_lane(
    tmp_path: Path, docker_host: str, pinned_image: Importer, container_name: str, free_port: int
) -> DockerLane:
    """Releases v1 and v2. Nothing is in their tuning cache: at this speed a boot takes 0.6 s."""
    model = write_whole(tmp_path / "models" / "workbench")
    entry = tmp_path / "switch" / "entry"
    entry.parent.mkdir()
    entry.write_text(ENTRY)
    entry.chmod(0o755)
    mounts = [
        {"source": "${cache}", "target": "/root/.cache/vllm"},
        {"source": str(entry.parent), "target": "/switch"},
    ]
    found = DockerLane(
        tmp_path, docker_host, pinned_image("workbench"), container_name,
        OPTIONS | {"port": free_port}, DAY_ZERO, model, {"GB300SERVE_SIM_SPEED": "8000"},
        {"entrypoint": "/switch/entry", "mounts": mounts},
    )  # fmt: skip
    found.site()
    found.write("v1")
    found.write("v2", max_num_seqs=4)
    return found


def switch(lane: DockerLane) -> Path:
    """Where files make the engine fail."""
    return lane.home / "switch"


def state(program: Program) -> Path:
    return program.home / ".local" / "state" / "gb300serve"


def policy(docker: Docker, name: str) -> str:
    """Restart policy and restarts of a container."""
    return docker("inspect", "--format", "{{.HostConfig.RestartPolicy.Name}} {{.RestartCount}}", name)


def names(docker: Docker, lane: DockerLane) -> list[str]:
    """Of all containers of the lane."""
    return sorted(docker("ps", "--all", "--format", "{{.Names}}", "--filter", f"name={lane.name}").split())


def entries(program: Program) -> list[tuple[str, str]]:
    told = program.run("journal", "--json").document["entries"]
    return [(each["verb"], each["result"]) for each in told]


def said(docker: Docker, container: str) -> str:
    """Its whole log, of both streams."""
    done = complete("docker", "logs", container, env={"DOCKER_HOST": docker.host})
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def now(docker: Docker) -> str:
    """The Engine's clock."""
    return docker("info", "--format", "{{.SystemTime}}")


def happened(docker: Docker, since: str, *filters: str) -> list[str]:
    """What the Engine did since then, `create NAME` and the like; of containers and images, unless filters say less."""
    given = [word for each in filters or ("type=container", "type=image") for word in ("--filter", each)]
    span = ("--since", since, "--until", now(docker))
    told = docker("events", *span, *given, "--format", "{{.Action}} {{.Actor.Attributes.name}}")
    return told.splitlines()
