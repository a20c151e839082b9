from dataclasses import replace

import pytest

from gb300serve.host.docker_info import DockerInfo
from gb300serve.host.linux import Limit
from gb300serve.host.missing import Missing
from tests.support.hosts import MIB, host, launched, said, station

PLAIN = DockerInfo("28.2.2", "amd64", ("runc",))
ROOTLESS = replace(PLAIN, rootless=True)


def test_docker_not_there() -> None:
    for subject in (station(docker=Missing("gone")), launched(host(docker=Missing("gone")))):
        ((severity, message, _),) = said(subject, "PRE010")
        assert (severity, message) == ("error", "gone")
    assert said(station(), "PRE010") == []


def test_gpus_for_containers() -> None:
    ((severity, message, hint),) = said(station(docker=PLAIN), "PRE011")
    assert severity == "warning"
    assert message == (
        "Docker names neither the NVIDIA runtime nor CDI devices: it may refuse to give GPUs to containers"
    )
    assert hint is not None
    assert "nvidia-ctk runtime configure" in hint
    assert said(station(docker=PLAIN, gpu_hook="/usr/bin/nvidia-container-runtime-hook"), "PRE011") == []
    assert said(station(docker=replace(PLAIN, cdi=("nvidia.com/gpu=0",))), "PRE011") == []
    assert said(launched(host(docker=PLAIN), container={"gpus": None}), "PRE011") == []
    assert said(station(docker=Missing("gone")), "PRE011") == []


@pytest.mark.parametrize(
    ("asked", "refused"), [(-1, True), ((1, -1), True), (4 * MIB, True), (8 * MIB, True), (None, False)]
)
def test_a_rootless_docker_lifts_no_limit(asked: object, refused: bool) -> None:
    ulimits = {} if asked is None else {"memlock": asked}
    subject = launched(host(docker=ROOTLESS, memlock=Limit(MIB, 8 * MIB)), container={"ulimits": ulimits})
    assert bool(said(subject, "PRE012")) is refused


def test_limits_that_are_enough() -> None:
    wants = {"ulimits": {"memlock": -1}}
    assert said(launched(host(docker=PLAIN, memlock=Limit(MIB, MIB)), container=wants), "PRE012") == []
    assert said(launched(host(docker=ROOTLESS), container=wants), "PRE012") == []
    ((_, message, _),) = said(launched(host(docker=ROOTLESS, memlock=Limit(MIB, 8 * MIB)), container=wants), "PRE012")
    assert message == "this rootless Docker may lock 8 MiB, and the release asks for more"
