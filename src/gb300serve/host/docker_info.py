"""`GET /info` of the Docker Engine, what `docker info` shows: its machine, and how it gives GPUs to containers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}
_GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class DockerInfo:
    """`architecture` is named as in images. `cdi` are the GPU devices that the Engine found described."""

    version: str
    architecture: str
    runtimes: tuple[str, ...] = ()
    cdi: tuple[str, ...] = ()
    rootless: bool = False
    memory: int | None = None

    @property
    def nvidia(self) -> bool:
        """Whether it says itself that it can give GPUs to containers."""
        return bool(self.cdi) or "nvidia" in self.runtimes


def parse_docker_info(info: Mapping[str, Any]) -> DockerInfo:
    """Keys that an Engine leaves out are taken as empty."""
    machine = str(info.get("Architecture") or "")
    devices = [str(one.get("ID") or "") for one in info.get("DiscoveredDevices") or [] if isinstance(one, Mapping)]
    return DockerInfo(
        version=str(info.get("ServerVersion") or "unknown"),
        architecture=_ARCHITECTURES.get(machine, machine),
        runtimes=tuple(sorted(map(str, info.get("Runtimes") or ()))),
        cdi=tuple(device for device in devices if device.startswith(_GPU)),
        rootless=any(str(option).startswith("name=rootless") for option in info.get("SecurityOptions") or ()),
        memory=info.get("MemTotal"),
    )
