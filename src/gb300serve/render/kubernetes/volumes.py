"""Bind mounts, shared memory and tmpfs as volumes of a pod."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from gb300serve.plan.model import ContainerPlan, Mount, Plan, parse_size
from gb300serve.render.target import bind_mounts

_UNITS = {"": "", "k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti", "p": "Pi"}
_ANNOTATION = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_USER = re.compile(r"(\d+)(?::(\d+))?", re.ASCII)


def object_name(plan: Plan) -> str:
    """The container's name, or the lane's, as a DNS label: at most 50 characters, so that a suffix still fits 63."""
    name = re.sub(r"[^a-z0-9]+", "-", (plan.container.name or plan.lane).lower()).strip("-")
    return (name if name[:1].isalpha() else f"lane-{name}")[:50].rstrip("-")


def quantity(text: str) -> str | None:
    """`16g` → `16Gi`: Docker's units are powers of 1024. None if it is not a whole number and a unit."""
    size = parse_size(text)
    return f"{size.number}{_UNITS[size.unit]}" if size is not None and size.number.isdecimal() else None


def parse_user_ids(user: str | None) -> tuple[int | None, int | None]:
    """`1000:1000` → both IDs; None for names, which only the image can resolve."""
    found = _USER.fullmatch(user or "")
    return (int(found[1]), int(found[2]) if found[2] else None) if found else (None, None)


def is_annotation(key: str) -> bool:
    """Whether the key of a Docker label is a valid annotation key."""
    return _ANNOTATION.fullmatch(key) is not None


def annotations(container: ContainerPlan) -> dict[str, str]:
    """Docker labels as annotations: the values of Kubernetes labels are restricted."""
    return {key: value for key, value in container.labels.items() if is_annotation(key)}


Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Volume:
    """An entry of `volumes` and its entry of `volumeMounts`."""

    source: Object
    mount: Object


def pod_volumes(plan: Plan) -> tuple[Volume, ...]:
    """All volumes, in the order of the mounts."""
    c = plan.container
    volumes = [_host_path(f"mount-{n}", mount, plan) for n, mount in enumerate(bind_mounts(c))]
    if has_own_shm(c):
        volumes.append(_memory_volume("shm", "/dev/shm", quantity(c.shm_size or "")))  # noqa: S108 - the container's
    for n, mount in enumerate(c.tmpfs):
        path, size = split_tmpfs(mount)
        volumes.append(_memory_volume(f"tmpfs-{n}", path, size))
    return tuple(volumes)


def has_own_shm(c: ContainerPlan) -> bool:
    """With the host's IPC namespace, /dev/shm is the host's and `--shm-size` has no effect, as in Docker."""
    return c.shm_size is not None and c.ipc != "host" and quantity(c.shm_size) is not None


def split_tmpfs(mount: str) -> tuple[str, str | None]:
    """`/tmp:size=1g` → path and quantity."""
    path, _, options = mount.partition(":")
    sizes = [option.removeprefix("size=") for option in options.split(",") if option.startswith("size=")]
    return path, quantity(sizes[-1]) if sizes else None


def is_guessed_file(mount: Mount, plan: Plan) -> bool:
    """Whether only the suffix of the target suggests that the source is a file."""
    return mount.sha256 is None and mount.source != plan.model_path and bool(PurePosixPath(mount.target).suffix)


def _path_type(mount: Mount, plan: Plan) -> str:
    """Kubernetes rejects a source that is missing or of another type."""
    return "File" if isinstance(mount.sha256, str) or is_guessed_file(mount, plan) else "Directory"


def _host_path(name: str, mount: Mount, plan: Plan) -> Volume:
    source = {"name": name, "hostPath": {"path": mount.source, "type": _path_type(mount, plan)}}
    return Volume(source, {"name": name, "mountPath": mount.target} | ({"readOnly": True} if mount.read_only else {}))


def _memory_volume(name: str, path: str, size: str | None) -> Volume:
    limit = {"sizeLimit": size} if size else {}
    return Volume({"name": name, "emptyDir": {"medium": "Memory"} | limit}, {"name": name, "mountPath": path})


def unsupported_tmpfs_options(c: ContainerPlan) -> Iterator[str]:
    """Options of tmpfs mounts that a memory volume cannot express."""
    for mount in c.tmpfs:
        for option in filter(None, mount.partition(":")[2].split(",")):
            if not (option.startswith("size=") and quantity(option.removeprefix("size="))):
                yield option
