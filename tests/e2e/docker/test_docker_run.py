"""The container that the tool creates is the one that the printed command creates: Docker's client is the reference."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from gb300serve.core.errors import CompileError
from gb300serve.lifecycle.backend import LABEL_LANE, LABEL_PLAN, LABEL_RELEASE
from gb300serve.plan.model import SECRET, ContainerPlan, HealthCheck, Mount, Plan, Secret
from gb300serve.render.docker_run import docker_argv
from tests.support.docker_engine import watched_docker
from tests.support.station import Docker, Importer

pytestmark = pytest.mark.docker

LABELS = {LABEL_LANE: "l", LABEL_RELEASE: "r", LABEL_PLAN: "0123"}
SECRETS = {"TOKEN": "s3cret with $pecial 'characters'", "OTHER": "x"}
IMAGE = "vllm/vllm-openai:differential-tests"


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """The options of a container, which get their name when the test runs, and the engine's words."""

    options: dict[str, Any]
    command: tuple[str, ...] = ("--model", "/model", "--port", "30006")


CASES = {
    "nothing": Case({}, ()),
    "the article": Case(
        {
            "gpus": "all",
            "ipc": "host",
            "network": "host",
            "ulimits": {"memlock": -1},
            "cap_add": ("IPC_LOCK",),
            "mounts": (Mount("/usr/share", "/model", read_only=True), Mount("/tmp", "/root/.cache/vllm")),
        },
        ("--model", "/model", "--speculative-config", '{"method":"dspark","n":[[1,4,5]]}', "", "ünïcode\n$x"),
    ),
    "limits": Case(
        {
            "shm_size": "16g",
            "memory": "1.5g",
            "ulimits": {"stack": 67108864, "nofile": (1024, 4096), "memlock": -1, "core": 0},
            "stop_timeout": 120,
            "init": True,
            "tmpfs": ("/run:size=64m,mode=1777", "/scratch"),
            "log_driver": "json-file",
            "log_options": {"max-size": "10m", "max-file": "3"},
        }
    ),
    "further options": Case(
        {
            "privileged": True,
            "group_add": ("video", "109"),
            "cpuset_cpus": "0",
            "memory": "1g",
            "memory_swap": "-1",
            "add_host": ("db:10.0.0.5", "v6=[::1]", "gateway:host-gateway"),
            "mounts": (Mount("gb300serve-differential", "/v", is_volume=True),),
        }
    ),
    "a health check": Case(
        {"healthcheck": HealthCheck("curl -f http://localhost/health", "1m30s", "500ms", "2h", None, 4)}
    ),
    "no health check": Case({"healthcheck": HealthCheck(disable=True)}),
    "rights": Case(
        {
            "cap_add": ("SYS_NICE", "cap_ipc_lock", "SYS_NICE"),
            "security_opt": ("seccomp=unconfined", "no-new-privileges", "label:disable"),
            "user": "1000:1000",
            "workdir": "/tmp",
            "pid": "host",
            "devices": ("/dev/zero", "/dev/null:/dev/nothing", "/dev/full:r", "/dev/random:/dev/chance:rw"),
        }
    ),
    "every capability": Case({"cap_add": ("IPC_LOCK", "all"), "security_opt": ("systempaths=unconfined",)}),
    "no stop timeout": Case({"stop_timeout": 0, "ipc": "private", "network": "none"}),
    "words": Case(
        {
            "labels": {"a": "b=c", "empty": ""},
            "env": {"MODE": "split", "EMPTY": "", "PAIR": "x=y"},
            "secrets": (Secret("TOKEN", env="TOKEN"), Secret("OTHER", file="/etc/key")),
            "entrypoint": "/bin/echo",
        }
    ),
    "secrets": Case(
        {"secrets": (Secret("TOKEN", env="TOKEN"),)}, ("--api-key", "${secret:TOKEN}", "--ssl=a${secret:TOKEN}b")
    ),
    "ports": Case(
        {"ports": ("8021:8000", "127.0.0.1:9000-9002:9000-9002", "[::1]:81:80", "53:53/udp", "7777", "8000-8005:90")}
    ),
    "some gpus": Case({"gpus": "2"}),
    "one gpu": Case({"gpus": "device=GPU-b3f0"}),
    "several gpus": Case({"gpus": "device=GPU-b3f0,GPU-77aa"}),
}


@pytest.fixture(scope="session", autouse=True)
def image(sim_image: Importer) -> str:
    return sim_image(IMAGE)


def plan_of(case: Case, name: str) -> Plan:
    container = ContainerPlan(name, **case.options)
    return Plan("l/r", "l", "r", "vllm", None, IMAGE, None, container, case.command, ("m",), None, None)


def inspected(docker: Docker, container: str) -> dict[str, Any]:
    """Config and HostConfig without what may differ: our labels, the hostname (from the id), what is attached."""
    found = json.loads(docker("inspect", container))[0]
    config = found["Config"]
    config["Labels"] = {key: value for key, value in config["Labels"].items() if key not in LABELS}
    if config["Hostname"] == found["Id"][:12]:
        del config["Hostname"]
    for stream in ("AttachStdin", "AttachStdout", "AttachStderr"):
        del config[stream]
    # The client keeps `-v` and `-e` in maps of Go's, whose order is random: two of its own containers differ in it.
    found["HostConfig"]["Binds"] = sorted(found["HostConfig"]["Binds"] or ())
    config["Env"] = sorted(config["Env"])
    return {f"{part}.{key}": value for part in ("Config", "HostConfig") for key, value in found[part].items()}


def differences(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Field → the value of the printed command's container and of ours, where they are not the same."""
    fields = sorted(theirs.keys() | ours.keys())
    pairs = {field: (_spelled(field, theirs.get(field)), _spelled(field, ours.get(field))) for field in fields}
    return {field: pair for field, pair in pairs.items() if pair[0] != pair[1]}


def _spelled(field: str, value: Any) -> Any:
    """What the clients 20.10 and 28.2 spell differently themselves: no list at all, and names of capabilities."""
    if field == "HostConfig.CapAdd":
        return sorted({name.upper().removeprefix("CAP_") for name in value or ()})
    return value or None if field == "HostConfig.Ulimits" or ".BlkioDevice" in field else value


def create_both(docker: Docker, plan: Plan) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the printed command creates, and what the backend creates."""
    program, run, detach, *words = docker_argv(plan)
    assert (program, run, detach) == ("docker", "run", "-d")
    # Where the printed line is pasted, the shell puts in the values.
    read = [SECRET.sub(lambda found: SECRETS[found[1]], word) for word in words]
    theirs = docker("create", *read, secrets=SECRETS)
    reference = inspected(docker, theirs)
    docker("rename", theirs, f"{plan.container.name}-theirs")
    ours = watched_docker(docker.host).create(plan, LABELS, SECRETS)
    return reference, inspected(docker, ours)


@pytest.mark.parametrize("title", CASES)
def test_both_containers_are_the_same(docker: Docker, container_name: str, title: str) -> None:
    reference, ours = create_both(docker, plan_of(CASES[title], container_name))
    assert differences(reference, ours) == {}


def test_a_seccomp_profile_is_read_on_this_machine(docker: Docker, container_name: str, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text('{"defaultAction": "SCMP_ACT_ALLOW",\n "comment": "ü"}', encoding="utf-8")
    case = Case({"security_opt": (f"seccomp={profile}",)})
    reference, ours = create_both(docker, plan_of(case, container_name))
    assert differences(reference, ours) == {}
    assert "SCMP_ACT_ALLOW" in ours["HostConfig.SecurityOpt"][0]


def test_the_command_that_runs_is_the_one_that_is_created(docker: Docker, container_name: str) -> None:
    case = dataclasses.replace(CASES["the article"], options=CASES["the article"].options | {"entrypoint": "/bin/true"})
    plan = plan_of(case, container_name)
    theirs = docker(*docker_argv(plan)[1:])
    docker("wait", theirs)
    reference = inspected(docker, theirs)
    docker("rm", theirs)
    ours = watched_docker(docker.host).create(plan, LABELS, {})
    assert differences(reference, inspected(docker, ours)) == {}


@pytest.mark.parametrize(
    "options",
    [
        {"ports": ("8000:x",)},
        {"ports": ("1-3:1-2",)},
        {"gpus": "some"},
        {"shm_size": "16x"},
        {"devices": ("a:b:c:d",)},
        {"security_opt": ("quiet",)},
    ],
)
def test_what_the_client_refuses_is_refused(docker: Docker, container_name: str, options: dict[str, Any]) -> None:
    plan = plan_of(Case(options), container_name)
    docker.refused("create", *docker_argv(plan)[3:])
    with pytest.raises(CompileError, match="is not valid"):
        watched_docker(docker.host).create(plan, LABELS, {})
