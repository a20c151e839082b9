from typing import Any

import pytest

from gb300serve.importers.inspected import host_options, listed, mapping, text


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
        ({"Binds": "nonsense", "Ulimits": 3, "PortBindings": [], "LogConfig": None}, []),
    ],
)  # fmt: skip
def test_what_was_said_to_docker(host: dict[str, Any], options: list[tuple[str, str | None]]) -> None:
    assert [(one.name, one.value) for one in host_options({}, host)] == options


def test_mounts_of_a_container_whose_host_part_names_none() -> None:
    mounts = [
        {"Type": "bind", "Source": "/a", "Destination": "/b", "RW": False},
        {"Type": "volume", "Source": "/v", "Destination": "/c"},
    ]
    assert [(one.name, one.value) for one in host_options({"Mounts": mounts}, {})] == [("volume", "/a:/b:ro")]


def test_anything_else_is_nothing() -> None:
    assert (mapping([]), listed({}), text(None), text(value := True), text(3)) == ({}, [], "", "", "3"), value
