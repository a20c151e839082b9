from typing import Any

import pytest

from gb300serve.plan.model import HealthCheck, Mount, Secret
from gb300serve.render.kubernetes.volumes import kubernetes_gaps
from tests.support.targets import codes, with_container


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, []),
        ({"gpus": "2"}, []),
        ({"gpus": "all"}, [("TGT002", "gpus")]),
        ({"gpus": "device=GPU-1"}, [("TGT001", "gpus")]),
        ({"devices": ("/dev/fuse",)}, [("TGT001", "devices")]),
        ({"ipc": "host"}, [("TGT002", "ipc")]),
        ({"pid": "host", "network": "host"}, [("TGT002", "network")]),
        ({"pid": "host"}, [("TGT002", "pid")]),
        ({"ipc": "shareable"}, [("TGT001", "ipc")]),
        ({"ipc": "private", "network": "bridge"}, []),
        ({"network": "none"}, [("TGT001", "network")]),
        ({"pid": "container:a"}, [("TGT001", "pid")]),
        ({"init": True}, [("TGT001", "init")]),
        ({"shm_size": "16g"}, []),
        ({"shm_size": "16g", "ipc": "host"}, [("TGT002", "ipc"), ("TGT002", "shm_size")]),
        ({"shm_size": "1.5g"}, [("TGT001", "shm_size")]),
        ({"memory": "64g"}, []),
        ({"memory": "1.5g"}, [("TGT001", "memory")]),
        ({"ulimits": {"memlock": -1, "nofile": 1}}, [("TGT001", "ulimits"), ("TGT001", "ulimits")]),
        ({"security_opt": ("seccomp=unconfined", "no-new-privileges", "no-new-privileges:true")}, []),
        ({"security_opt": ("seccomp=/a.json",)}, [("TGT001", "security_opt")]),
        ({"user": "1000:1000"}, []),
        ({"user": "root"}, [("TGT001", "user")]),
        ({"log_driver": "json-file"}, [("TGT001", "log")]),
        ({"mounts": (Mount("/a", "/b"),)}, [("TGT002", "mounts")]),
        ({"mounts": (Mount("/a", "/b.py"),)}, [("TGT002", "mounts"), ("TGT002", "mounts")]),
        ({"mounts": (Mount("a", "/b", is_volume=True),)}, [("TGT003", "mounts")]),
        ({"privileged": True}, [("TGT002", "privileged")]),
        ({"group_add": ("109", "video")}, [("TGT001", "group_add")]),
        ({"cpuset_cpus": "0-71", "memory_swap": "-1"}, [("TGT001", "cpuset_cpus"), ("TGT001", "memory_swap")]),
        ({"add_host": ("db:10.0.0.5", "h:host-gateway")}, [("TGT001", "add_host")]),
        ({"healthcheck": HealthCheck("true")}, [("TGT002", "healthcheck")]),
        ({"tmpfs": ("/tmp:size=1g",)}, []),
        ({"tmpfs": ("/tmp:size=1g,mode=1777",)}, [("TGT001", "tmpfs")]),
        ({"labels": {"a": "b", "a b": "c"}}, [("TGT001", "labels")]),
        ({"ports": ("8000", "8021:8000")}, [("TGT002", "ports")]),
        ({"ports": ("127.0.0.1:8021:8000", "53:53/udp", "1-3:1-3")}, [("TGT001", "ports")] * 3),
        ({"secrets": (Secret("K", env="K"), Secret("L", file="/l"))}, [("TGT003", "secrets")]),
    ],
)  # fmt: skip
def test_omitted_and_different_options(options: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    found = codes(kubernetes_gaps(with_container(restart="always", **options)))
    assert found.pop(next(n for n, (_, path) in enumerate(found) if path == "container.restart")) == (
        "TGT002",
        "container.restart",
    )
    assert found == [(code, f"container.{option}") for code, option in expected]


@pytest.mark.parametrize("policy", ["no", "on-failure", "on-failure:3"])
def test_a_deployment_always_restarts(policy: str) -> None:
    assert codes(kubernetes_gaps(with_container(restart=policy))) == [("TGT001", "container.restart")]


def test_one_command_makes_the_secret() -> None:
    (_, found) = kubernetes_gaps(
        with_container(secrets=(Secret("K", env="A"), Secret("L", file="/l")), restart="always")
    )
    assert (
        found.hint == 'kubectl create secret generic bench-secrets --from-literal=K="$A" --from-literal=L="$(cat /l)"'
    )
    (_, found) = kubernetes_gaps(with_container(secrets=(Secret("L", file="~/a key"),), restart="always"))
    assert found.hint is not None
    assert found.hint.endswith("""--from-literal=L="$(cat "$HOME"/'a key')\"""")
