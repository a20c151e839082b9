"""Parsers for cgroups, mounts, memory, NUMA nodes, listening sockets and `docker info`."""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gb300serve.core.values import Missing

# `…/docker-<id>.scope` (systemd), `…/docker/<id>` (cgroupfs), `…:cri-containerd:<id>`, `…/libpod-<id>.scope`.
_CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def container_of_cgroup(text: str) -> str | None:
    """The container's full id; None for a process of the host itself."""
    match = _CONTAINER.search(text)
    return match[0] if match else None


_SHARED = re.compile(r"^RssShmem:\s*(\d+) kB$", re.MULTILINE)


def parse_shared_memory(status: str) -> int | None:
    """Bytes of shared memory that a process holds, from /proc/PID/status; pinned host memory counts as shared."""
    match = _SHARED.search(status)
    return int(match[1]) * 1024 if match else None


MOUNTINFO_PATH = "/proc/self/mountinfo"
_ESCAPED = re.compile(r"\\([0-7]{3})")
_NETWORK = frozenset(
    {"cifs", "smb2", "smb3", "smbfs", "nfs", "nfs4", "ncpfs", "afs", "9p", "ceph", "glusterfs", "lustre", "beegfs"}
)
_OVER_NETWORK = ("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.goofys")


@dataclass(frozen=True, slots=True)
class Filesystem:
    """`kind` is its type, such as `xfs` or `cifs`; `source` is a device or a share."""

    mounted_on: str
    kind: str
    source: str

    @property
    def network(self) -> bool:
        """Whether its data come over a network."""
        return self.kind in _NETWORK or self.kind.startswith(_OVER_NETWORK)


def parse_mountinfo(text: str) -> tuple[Filesystem, ...]:
    """The mounts in their order; other lines are skipped."""
    mounts = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        place, kind = before.split(" "), after.split(" ")
        if separator and len(place) > 4 and len(kind) > 1:
            mounts.append(Filesystem(_plain(place[4]), kind[0], _plain(kind[1])))
    return tuple(mounts)


def filesystem_of(filesystems: tuple[Filesystem, ...], path: str) -> Filesystem | None:
    """The filesystem of a path without links: the longest mount point above it, the last one of equals."""
    above = [mount for mount in filesystems if f"{path}/".startswith(mount.mounted_on.rstrip("/") + "/")]
    return max(reversed(above), key=lambda mount: len(mount.mounted_on), default=None)


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class Limit:
    """Bytes; -1 means unlimited, as in `--ulimit`."""

    soft: int
    hard: int


MEMINFO_PATH = "/proc/meminfo"
_LINE = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Bytes. `available` is what can be had without swapping; `page_cache` is part of it, but for what is pinned."""

    total: int
    available: int
    page_cache: int


def parse_meminfo(text: str) -> HostMemory | Missing:
    """The three figures."""
    sizes = {name: int(size) * 1024 for name, size in _LINE.findall(text)}
    try:
        return HostMemory(sizes["MemTotal"], sizes["MemAvailable"], sizes.get("Cached", 0))
    except KeyError as error:
        return Missing(f"{MEMINFO_PATH} has no {error.args[0]}")


NUMA_NODES = "/sys/devices/system/node"
_NODE = re.compile(r"node\d+")
_PAGES = re.compile(r"^Node \d+ FilePages:\s+(\d+) kB$", re.MULTILINE)


def numa_nodes(names: tuple[str, ...]) -> tuple[str, ...]:
    """The nodes among the names of the directory."""
    return tuple(name for name in names if _NODE.fullmatch(name))


def numa_page_cache(text: str) -> int:
    """Bytes of file pages on a node."""
    match = _PAGES.search(text)
    return int(match[1]) * 1024 if match else 0


# Linux, Documentation/networking/proc_net_tcp.rst.
_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class Socket:
    """A listening socket; `inode` identifies it among the file descriptors of its owner."""

    address: str
    port: int
    inode: str


def parse_listening_sockets(text: str) -> Iterator[Socket]:
    """The listening sockets of a table; other lines are skipped."""
    for line in text.splitlines():
        words = line.split()
        if len(words) > 9 and words[3] == _LISTEN and ":" in words[1]:
            address, _, port = words[1].rpartition(":")
            yield Socket(_address(address), int(port, 16), words[9])


def _address(text: str) -> str:
    """Words of 32 bits in the machine's byte order, which is little-endian wherever this runs."""
    raw = bytes.fromhex(text)
    words = [raw[start : start + 4][::-1] for start in range(0, len(raw), 4)]
    return str(ipaddress.ip_address(b"".join(words)))


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
        """Whether it reports that it can give GPUs to containers."""
        return bool(self.cdi) or "nvidia" in self.runtimes


def parse_docker_info(info: Mapping[str, Any]) -> DockerInfo:
    """Missing keys are read as empty."""
    machine = str(info.get("Architecture") or "")
    devices = [str(device.get("ID")) for device in info.get("DiscoveredDevices") or [] if isinstance(device, Mapping)]
    return DockerInfo(
        version=str(info.get("ServerVersion") or "unknown"),
        architecture=_ARCHITECTURES.get(machine, machine),
        runtimes=tuple(sorted(map(str, info.get("Runtimes") or ()))),
        cdi=tuple(device for device in devices if device.startswith(_GPU)),
        rootless=any(str(option).startswith("name=rootless") for option in info.get("SecurityOptions") or ()),
        memory=info.get("MemTotal"),
    )
