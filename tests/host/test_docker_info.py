from gb300serve.host.docker_info import DockerInfo, parse_docker_info


def test_a_station() -> None:
    info = {
        "ServerVersion": "29.1.3",
        "Architecture": "aarch64",
        "Runtimes": {"runc": {"path": "runc"}, "nvidia": {"path": "nvidia-container-runtime"}},
        "DefaultRuntime": "runc",
        "SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"],
        "MemTotal": 518520832,
        "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}, {"Source": "cdi", "ID": "vendor.com/x=0"}],
    }
    found = parse_docker_info(info)
    assert found == DockerInfo(
        "29.1.3", "arm64", ("nvidia", "runc"), ("nvidia.com/gpu=0",), memory=518520832, rootless=False
    )
    assert found.nvidia


def test_keys_that_are_left_out() -> None:
    assert parse_docker_info({"SecurityOptions": ["name=rootless"], "Runtimes": None}) == DockerInfo(
        "unknown", "", rootless=True
    )
    assert not parse_docker_info({"Runtimes": {"runc": {}}}).nvidia
    assert parse_docker_info({"Runtimes": {"runc": {}}, "DiscoveredDevices": [{"ID": "nvidia.com/gpu=all"}]}).nvidia
