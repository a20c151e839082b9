from typing import Any

import pytest

from gb300serve.adapters.docker import inspect
from gb300serve.lifecycle.backend import Container, Image

INSPECTED: dict[str, Any] = {
    "Id": "f00d",
    "Name": "/lane",
    "Created": "2026-11-29T19:50:03.5Z",
    "Image": "sha256:aa",
    "RestartCount": 2,
    "State": {
        "Status": "exited",
        "Running": False,
        "OOMKilled": True,
        "ExitCode": 137,
        "Error": "",
        "StartedAt": "2026-11-29T19:50:04.000000001Z",
        "FinishedAt": "2026-11-29T21:50:05+02:00",
    },
    "Config": {
        "Image": "vllm/vllm-openai:x",
        "Cmd": ["--model", "/model"],
        "Labels": {"gb300serve.plan": "0123"},
        "Env": ["A=1", "B=x=y", "C="],
        "StopTimeout": 30,
        "Entrypoint": ["vllm", "serve"],
    },
    "HostConfig": {
        "NetworkMode": "host",
        "IpcMode": "host",
        "CapAdd": ["CAP_IPC_LOCK"],
        "Privileged": True,
        "GroupAdd": ["video", "109"],
        "CpusetCpus": "0-71",
        "ExtraHosts": ["v6:::1"],
        "Binds": ["/models/x:/model:ro", "/cache/:/root/.cache/vllm/"],
        "Mounts": [{"Type": "bind", "Source": "/w", "Target": "/w", "ReadOnly": True}, {"Type": "volume"}],
        "Ulimits": [{"Name": "memlock", "Soft": -1, "Hard": -1}, {"Name": "nofile", "Soft": 1024, "Hard": 4096}],
        "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 3},
        "DeviceRequests": [{"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]]}],
        "PortBindings": {"80/tcp": [{"HostIp": "", "HostPort": "8021"}], "81/tcp": [{"HostIp": "", "HostPort": ""}]},
    },
    "NetworkSettings": {"Ports": {"81/tcp": [{"HostIp": "0.0.0.0", "HostPort": "49153"}], "82/tcp": None}},
}


def test_container() -> None:
    start = 1795981803.0
    assert inspect.container(INSPECTED) == Container(
        id="f00d",
        name="lane",
        image="vllm/vllm-openai:x",
        image_id="sha256:aa",
        state="exited",
        labels={"gb300serve.plan": "0123"},
        command=("--model", "/model"),
        created_at=start + 0.5,
        started_at=start + 1,
        finished_at=start + 2,
        exit_code=137,
        oom_killed=True,
        restart_count=2,
        restart_policy="on-failure:3",
        host_network=True,
        gpus="all",
        env={"A": "1", "B": "x=y", "C": ""},
        published=(8021, 49153),
        stop_timeout=30,
        options={
            "network": "host",
            "ipc": "host",
            "cap_add": "IPC_LOCK",
            "privileged": "true",
            "group_add": "109 video",
            "cpuset_cpus": "0-71",
            "add_host": "v6:::1",
            "entrypoint": "vllm serve",
            "mounts./model": "/models/x, read-only",
            "mounts./root/.cache/vllm": "/cache",
            "mounts./w": "/w, read-only",
            "ulimits.memlock": "-1",
            "ulimits.nofile": "1024:4096",
        },
    )


def test_a_container_that_was_only_created() -> None:
    never = "0001-01-01T00:00:00Z"
    state = {"Status": "created", "ExitCode": 0, "StartedAt": never, "FinishedAt": never}
    config = {"Cmd": None, "Labels": None, "Env": None}
    found = inspect.container(INSPECTED | {"State": INSPECTED["State"] | state, "Config": INSPECTED["Config"] | config})
    assert (found.started_at, found.finished_at, found.exit_code) == (None, None, None)
    assert (found.command, found.labels, found.env) == ((), {}, {})


@pytest.mark.parametrize(
    ("stamp", "nanos"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000_000),
        ("2026-11-29T19:50:03.123456789Z", 1795981803_123456789),
        ("2026-11-29T19:50:03.1Z", 1795981803_100000000),
        ("2026-11-29T21:50:03.1+02:00", 1795981803_100000000),
        ("0001-01-01T00:00:00Z", 0),
        ("", 0),
    ],
)
def test_nanoseconds(stamp: str, nanos: int) -> None:
    assert inspect.nanoseconds(stamp) == nanos


def request(count: int, ids: list[str] | None, driver: str = "") -> dict[str, Any]:
    capabilities = None if driver == "cdi" else [["gpu"]]
    return {"Driver": driver, "Count": count, "DeviceIDs": ids, "Capabilities": capabilities}


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        (None, None),
        ([request(-1, None)], "all"),
        ([request(2, None)], "2"),
        ([request(0, ["GPU-a"])], "device=GPU-a"),
        ([request(0, ["GPU-a", "GPU-b"])], "device=GPU-a,GPU-b"),
        ([request(0, ["nvidia.com/gpu=all"], "cdi")], "all"),
        ([request(0, ["nvidia.com/gpu=0", "nvidia.com/gpu=1"], "cdi")], "device=0,1"),
        ([request(0, ["vendor.com/nic=0"], "cdi"), request(1, None)], "1"),
    ],
)
def test_gpus(requests: list[dict[str, Any]] | None, expected: str | None) -> None:
    assert inspect.gpus({"DeviceRequests": requests}) == expected


def test_image() -> None:
    inspected: dict[str, Any] = {"Id": "sha256:aa", "RepoDigests": None, "Architecture": "arm64", "Config": {}}
    assert inspect.image(inspected) == Image("sha256:aa", (), "arm64")
    config = {"Entrypoint": ["vllm", "serve"]}
    assert inspect.image(inspected | {"RepoDigests": ["a@sha256:bb"], "Config": config}) == Image(
        "sha256:aa", ("a@sha256:bb",), "arm64", ("vllm", "serve")
    )
