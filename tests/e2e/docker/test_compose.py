"""The container that a compose file makes, next to that of `up`: the guide `targets` lists the differences."""

from pathlib import Path
from typing import Any

import pytest

from gb300serve.plan.model import ContainerPlan, Mount, Plan, Secret
from gb300serve.render.compose import compose
from tests.e2e.docker.test_docker_run import differences, inspected
from tests.render.test_compose import for_debian
from tests.support.command import run
from tests.support.docker_engine import watched_docker
from tests.support.station import Docker, Importer, part_program
from tests.support.targets import SERVING

pytestmark = pytest.mark.docker

IMAGE = "vllm/vllm-openai:compose-tests"
SECRETS = {"TOKEN": "s3cret with $pecial 'characters'"}
ARTICLE: dict[str, Any] = {
    "gpus": "all",
    "ipc": "host",
    "network": "host",
    "ulimits": {"memlock": -1},
    "cap_add": ("IPC_LOCK",),
    "mounts": (Mount("/usr/share", "/model", read_only=True), Mount("/tmp", "/root/.cache/vllm")),
}
OTHERS: dict[str, Any] = {
    "shm_size": "16g",
    "ulimits": {"nofile": (1024, 4096)},
    "security_opt": ("seccomp=unconfined",),
    "init": True,
    "stop_timeout": 30,
    "user": "1000:1000",
    "workdir": "/tmp",
    "pid": "host",
    "memory": "64g",
    "tmpfs": ("/run:size=64m",),
    "log_driver": "json-file",
    "log_options": {"max-size": "10m"},
    "devices": ("/dev/null:/dev/nothing",),
    "labels": {"a": "b$c"},
    "ports": ("127.0.0.1:8021:8000",),
    "env": {"A": "x$y ${z}"},
    "secrets": (Secret("TOKEN", env="TOKEN"),),
    "entrypoint": "/bin/echo",
}


def created_both(docker: Docker, directory: Path, plan: Plan) -> dict[str, tuple[Any, Any]]:
    """Field → what compose made of it and what `up` does; nothing, none and an empty list are one."""
    program = part_program("docker-compose", "Docker Compose")
    file = directory / "compose.yaml"
    file.write_text(for_debian(compose(plan, SERVING).text), encoding="utf-8")
    words = (program, "--file", str(file), "--project-name", plan.container.name)
    run(*words, "up", "--no-start", env={"DOCKER_HOST": docker.host, **SECRETS})
    theirs = inspected(docker, plan.container.name)
    docker("rename", plan.container.name, f"{plan.container.name}-theirs")
    ours = watched_docker(docker.host).create(plan, {}, SECRETS)
    found = differences(settled(theirs), settled(inspected(docker, ours)))
    return {field: pair for field, pair in found.items() if any(pair)}


def settled(fields: dict[str, Any]) -> dict[str, Any]:
    """Without the labels of compose, and with mounts and requests in one spelling."""
    labels = {key: value for key, value in fields["Config.Labels"].items() if not key.startswith("com.docker.compose.")}
    mounts = [
        f"{m['Source']}:{m['Target']}{':ro' if m.get('ReadOnly') else ''}"
        for m in fields.get("HostConfig.Mounts") or ()
    ]
    requests = [{key: value or None for key, value in one.items()} for one in fields["HostConfig.DeviceRequests"] or ()]
    return {
        **fields,
        "Config.Labels": labels,
        "HostConfig.Mounts": None,
        "HostConfig.Binds": sorted([*mounts, *fields["HostConfig.Binds"]]),
        "HostConfig.DeviceRequests": requests,
    }


HEALTH = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=5)"
ALWAYS = {
    "Config.Healthcheck": (
        {
            "Test": ["CMD", "python3", "-c", HEALTH],
            "Interval": 30_000_000_000,
            "Timeout": 10_000_000_000,
            "StartPeriod": 5_855_000_000_000,
            "Retries": 3,
        },
        None,
    ),
    "HostConfig.RestartPolicy": ({"Name": "", "MaximumRetryCount": 0}, {"Name": "no", "MaximumRetryCount": 0}),
}


@pytest.mark.parametrize(
    ("options", "expected"),
    [(ARTICLE, ALWAYS), (OTHERS, ALWAYS | {"HostConfig.NetworkMode": ("bridge", "default")})],
    ids=["the article", "the other options"],
)
def test_the_differences_are_these(
    docker: Docker,
    sim_image: Importer,
    container_name: str,
    tmp_path: Path,
    options: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    sim_image(IMAGE)
    words = ("--model", "/model", "--config", '{"a":[[1,4,5]]}', "", "$x ${y} $$ ünïcode", "--key", "${secret:TOKEN}")
    command = words if options.get("secrets") else words[:-2]
    container = ContainerPlan(container_name, **options)
    plan = Plan("l/r", "l", "r", "vllm", None, IMAGE, None, container, command, (), None, None)
    assert created_both(docker, tmp_path, plan) == expected
