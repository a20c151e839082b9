import json
from typing import Any

import pytest

from gb300serve.importers.inspected import as_list, as_mapping, as_text, host_options
from gb300serve.importers.read import Result, read_inspected, read_text
from gb300serve.importers.report import NotImportableError
from gb300serve.importers.shell.words import ShellEnvironment

GPU = {"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}
ID = "sha256:" + "ab" * 32
SERVER = ["python3", "-m", "vllm.entrypoints.openai.api_server"]
OWN = ["PATH=/usr/bin", "CUDA_VERSION=13.0.1"]


def container(config: dict[str, Any] | None = None, host: dict[str, Any] | None = None) -> dict[str, Any]:
    """What `docker inspect` prints of a container: an object of its list."""
    return {
        "Id": "1" * 64,
        "Name": "/bench",
        "Image": ID,
        "Config": {
            "Image": "vllm/vllm-openai:v0.32.0",
            "Entrypoint": ["vllm", "serve"],
            "Cmd": ["--model", "/model", "--engram-config", '{"cpu_offload": true}'],
            "Env": OWN,
            "Labels": {"maintainer": "x", "gb300serve.lane": "bench", "team": "y"},
            "WorkingDir": "/vllm-workspace",
            **(config or {}),
        },
        "HostConfig": {"NetworkMode": "host", "IpcMode": "private", "ShmSize": 67108864, **(host or {})},
    }


def read(config: dict[str, Any] | None = None, host: dict[str, Any] | None = None) -> Result:
    return read_text(json.dumps([container(config, host)]), "inspect.json", ShellEnvironment("/h", "/w"))


def section(host: dict[str, Any]) -> dict[str, Any]:
    """The container's section, without what every one of these has."""
    found: dict[str, Any] = dict(read(host=host).document["container"])
    assert (found.pop("name"), found.pop("labels")) == ("bench", {"team": "y"})
    return found


def test_the_whole() -> None:
    found = read({"Env": [*OWN, "HF_TOKEN=hf_Qw3rTy7uIoPaSdFgHj", "A=1"]}, {"DeviceRequests": [GPU]})
    assert found.document == {
        "format": "gb300serve/1",
        "lane": "bench",
        "release": "imported",
        "title": "Imported bench",
        "status": "draft",
        "image": {"repository": "vllm/vllm-openai", "tag": "v0.32.0", "id": ID},
        "container": {
            "name": "bench",
            "gpus": "all",
            "network": "host",
            "labels": {"team": "y"},
            "env": {"A": "1"},
            "secrets": {"HF_TOKEN": {"env": "HF_TOKEN"}},
        },
        "engine": {
            "name": "vllm",
            "version": "0.32.0",
            "options": {"model": "/model", "engram_config": {"cpu_offload": True}},
        },
    }
    assert [d.name for d in found.diagnostics] == ["left-out", "literal-secret"]


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ({"NetworkMode": "default"}, {}),
        ({"IpcMode": "host", "PidMode": "host"}, {"ipc": "host", "pid": "host"}),
        ({"ShmSize": 24 << 30, "Memory": 3 << 20}, {"shm_size": "24g", "memory": "3m"}),
        ({"ShmSize": 1000}, {"shm_size": "1000"}),
        ({"CapAdd": ["CAP_IPC_LOCK", "SYS_NICE"]}, {"cap_add": ["IPC_LOCK", "SYS_NICE"]}),
        ({"Init": True, "SecurityOpt": ["label=disable"]}, {"security_opt": ["label=disable"], "init": True}),
        ({"Tmpfs": {"/t": "size=1g", "/u": ""}}, {"tmpfs": ["/t:size=1g", "/u"]}),
        ({"RestartPolicy": {"Name": "unless-stopped", "MaximumRetryCount": 0}}, {"restart": "unless-stopped"}),
        ({"RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 3}}, {"restart": "on-failure:3"}),
        (
            {"Ulimits": [{"Name": "memlock", "Hard": -1, "Soft": -1}, {"Name": "nofile", "Hard": 2, "Soft": 1}]},
            {"ulimits": {"memlock": -1, "nofile": {"soft": 1, "hard": 2}}},
        ),
        (
            {"Binds": ["/a:/b:ro", "/c:/d"]},
            {"mounts": [{"source": "/a", "target": "/b", "read_only": True}, {"source": "/c", "target": "/d"}]},
        ),
        (
            {"Mounts": [{"Type": "bind", "Source": "/a", "Target": "/b", "ReadOnly": True}]},
            {"mounts": [{"source": "/a", "target": "/b", "read_only": True}]},
        ),
        (
            {"PortBindings": {"8000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "81"}], "9/udp": [{"HostPort": "9"}]}},
            {"ports": ["127.0.0.1:81:8000", "9:9/udp"]},
        ),
        ({"DeviceRequests": [GPU | {"Count": 0, "DeviceIDs": ["0", "1"]}]}, {"gpus": {"index": [0, 1]}}),
        (
            {"DeviceRequests": [{"Driver": "cdi", "Count": 0, "DeviceIDs": ["nvidia.com/gpu=GPU-1a"]}]},
            {"gpus": {"uuid": "GPU-1a"}},
        ),
        (
            {"Devices": [{"PathOnHost": "/dev/a", "PathInContainer": "/dev/b", "CgroupPermissions": "rwm"}]},
            {"devices": ["/dev/a:/dev/b"]},
        ),
        (
            {"LogConfig": {"Type": "json-file", "Config": {"max-size": "1m"}}},
            {"log": {"driver": "json-file", "options": {"max-size": "1m"}}},
        ),
    ],
)
def test_options_of_the_host(host: dict[str, Any], said: dict[str, Any]) -> None:
    network = {} if host.get("NetworkMode") == "default" else {"network": "host"}
    assert section(host) == said | network


def test_the_older_runtime() -> None:
    found = read({"Env": ["NVIDIA_VISIBLE_DEVICES=GPU-1a"]}, {"Runtime": "nvidia"}).document["container"]
    assert found["gpus"] == {"uuid": "GPU-1a"}


@pytest.mark.parametrize(
    ("config", "entrypoint", "command"),
    [
        ({"Entrypoint": ["/bin/bash"], "Cmd": ["-c", "exec vllm serve /m"]}, "vllm", ("serve", "/m")),
        (
            {"Entrypoint": ["numactl"], "Cmd": ["-m", "0", "vllm", "serve", "/m"]},
            "numactl",
            ("-m", "0", "vllm", "serve", "/m"),
        ),
        ({"Entrypoint": None, "Cmd": ["vllm", "serve", "/m"], "Image": "x/y:1"}, None, ("vllm", "serve", "/m")),
        ({"Entrypoint": SERVER, "Cmd": ["--model", "/m"]}, None, ("--model", "/m")),
        ({"Entrypoint": ["/e", "x"], "Cmd": ["--model", "/m"]}, None, ("--model", "/m")),
    ],
)
def test_entrypoints(config: dict[str, Any], entrypoint: str | None, command: tuple[str, ...]) -> None:
    plan = read(config).plan
    assert (plan.container.entrypoint, plan.command) == (entrypoint, command)


def test_with_the_image_nothing_is_guessed() -> None:
    image = {
        "Config": {
            "Entrypoint": ["/e", "x"],
            "Env": ["A=1", "B=2"],
            "Labels": {"team": "y", "maintainer": "x"},
            "WorkingDir": "/v",
        }
    }
    inspected = container({"Env": ["A=1", "B=3", "PATH=/own"], "Entrypoint": ["/e", "x"], "User": "1000"})
    found = read_inspected(inspected, image, "bench")
    assert found.document["container"] == {
        "name": "bench",
        "network": "host",
        "user": "1000",
        "workdir": "/vllm-workspace",
        "env": {"B": "3", "PATH": "/own"},
    }
    assert found.diagnostics == ()


def test_a_health_check_that_is_not_the_images() -> None:
    own = {"Test": ["CMD", "curl", "-f", "http://localhost/a b"], "Interval": 90_000_000_000, "Retries": 4}
    inspected = container({"Healthcheck": own})
    found = read_inspected(inspected, {"Config": {"Healthcheck": {"Test": ["CMD", "x"]}}}, "bench")
    assert found.document["container"]["healthcheck"] == {
        "test": "curl -f 'http://localhost/a b'", "interval": "90s", "retries": 4,
    }  # fmt: skip
    assert "healthcheck" not in read_inspected(inspected, {"Config": {"Healthcheck": own}}, "b").document["container"]


def test_several_containers() -> None:
    found = read_text(json.dumps([container(), container()]), "i.json", ShellEnvironment("/h", "/w"))
    assert "the file describes 2 containers: the first was imported" in [d.message for d in found.diagnostics]


@pytest.mark.parametrize("junk", [None, 1, "x", [], [None], {"a": 1}, [[1]], True])
def test_hostile_values(junk: Any) -> None:
    keys = (
        "Binds",
        "Mounts",
        "DeviceRequests",
        "PortBindings",
        "Ulimits",
        "CapAdd",
        "RestartPolicy",
        "LogConfig",
        "Tmpfs",
    )
    found = read({"Env": junk, "Labels": junk, "Cmd": ["--model", "/m"]}, dict.fromkeys(keys, junk))
    assert found.document["engine"]["options"] == {"model": "/m"}


@pytest.mark.parametrize(
    ("host", "options"),
    [
        ({"DeviceRequests": [{"Count": -1, "Capabilities": [["gpu"]]}]}, [("gpus", "-1")]),
        ({"DeviceRequests": [{"DeviceIDs": ["a", "b"], "Capabilities": [["gpu"]]}]}, [("gpus", '"device=a,b"')]),
        ({"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=0"]}]}, [("device", "nvidia.com/gpu=0")]),
        ({"Runtime": "nvidia"}, [("runtime", "nvidia")]),
        ({"IpcMode": "host", "NetworkMode": "host"}, [("ipc", "host"), ("network", "host")]),
        ({"IpcMode": "private", "NetworkMode": "bridge", "ShmSize": 64 << 20}, []),
        ({"ShmSize": 32 << 30, "Memory": 1536 << 20}, [("shm-size", "32g"), ("memory", "1536m")]),
        ({"ShmSize": 1023}, [("shm-size", "1023")]),
        ({"PidMode": "host", "Init": True}, [("pid", "host"), ("init", None)]),
        ({"Ulimits": [{"Name": "memlock", "Soft": -1, "Hard": -1}]}, [("ulimit", "memlock=-1:-1")]),
        ({"CapAdd": ["CAP_IPC_LOCK", "SYS_NICE"]}, [("cap-add", "IPC_LOCK"), ("cap-add", "SYS_NICE")]),
        ({"Binds": ["/a:/b:ro"]}, [("volume", "/a:/b:ro")]),
        (
            {"Mounts": [{"Type": "bind", "Source": "/a", "Target": "/b", "ReadOnly": True}]},
            [("mount", "type=bind,source=/a,target=/b,readonly")],
        ),
        ({"Tmpfs": {"/t": "size=1g", "/u": ""}}, [("tmpfs", "/t:size=1g"), ("tmpfs", "/u")]),
        (
            {"PortBindings": {"8000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "80"}], "53/udp": [{"HostPort": "1"}]}},
            [("publish", "127.0.0.1:80:8000"), ("publish", "1:53/udp")],
        ),
        ({"SecurityOpt": ["seccomp=unconfined"]}, [("security-opt", "seccomp=unconfined")]),
        ({"Devices": [{"PathOnHost": "/d", "PathInContainer": "/d", "CgroupPermissions": "rwm"}]}, [("device", "/d")]),
        ({"Devices": [{"PathOnHost": "/d", "PathInContainer": "/e", "CgroupPermissions": "r"}]},
         [("device", "/d:/e:r")]),
        ({"LogConfig": {"Type": "json-file", "Config": {}}}, []),
        (
            {"LogConfig": {"Type": "local", "Config": {"max-size": "1m"}}},
            [("log-driver", "local"), ("log-opt", "max-size=1m")],
        ),
        ({"RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 3}}, [("restart", "on-failure:3")]),
        ({"RestartPolicy": {"Name": "no"}}, []),
        ({"Privileged": True, "AutoRemove": False, "NanoCpus": 0, "UTSMode": "host"},
         [("privileged", None), ("uts", "host")]),
        ({"NanoCpus": 2_500_000_000}, [("cpus", "2.5")]),
        ({"GroupAdd": ["video"], "CpusetCpus": "0-71", "ExtraHosts": ["db:10.0.0.5"]},
         [("add-host", "db:10.0.0.5"), ("group-add", "video"), ("cpuset-cpus", "0-71")]),
        ({"Memory": 1 << 30, "MemorySwap": 2 << 30}, [("memory", "1g")]),
        ({"Memory": 1 << 30, "MemorySwap": -1}, [("memory", "1g"), ("memory-swap", "-1")]),
        ({"Memory": 1 << 30, "MemorySwap": 3 << 30}, [("memory", "1g"), ("memory-swap", "3g")]),
        ({"Binds": "nonsense", "Ulimits": 3, "PortBindings": [], "LogConfig": None}, []),
    ],
)  # fmt: skip
def test_options_of_a_container(host: dict[str, Any], options: list[tuple[str, str | None]]) -> None:
    assert [(one.name, one.value) for one in host_options({}, host)] == options


def test_mounts_of_a_container_without_host_mounts() -> None:
    mounts = [
        {"Type": "bind", "Source": "/a", "Destination": "/b", "RW": False},
        {"Type": "volume", "Source": "/v", "Destination": "/c"},
    ]
    assert [(one.name, one.value) for one in host_options({"Mounts": mounts}, {})] == [("volume", "/a:/b:ro")]


def test_values_of_other_types_are_empty() -> None:
    assert (as_mapping([]), as_list({}), as_text(None), as_text(value := True), as_text(3)) == ({}, [], "", "", "3"), (
        value
    )


def test_a_container_that_runs_something_else() -> None:
    with pytest.raises(NotImportableError, match="the container runs `sleep infinity`"):
        read({"Entrypoint": ["sleep"], "Cmd": ["infinity"]})
