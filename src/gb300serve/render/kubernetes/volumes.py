"""Bind mounts, shared memory and tmpfs as volumes of a pod. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from gb300serve.plan.model import ContainerPlan, Mount, Plan, parse_size
from gb300serve.render.target import binds

_UNITS = {"": "", "k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti", "p": "Pi"}
_ANNOTATION = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_USER = re.compile(r"(\d+)(?::(\d+))?", re.ASCII)


def object_name(plan: Plan) -> str:
    """The container's name, or the lane's, as a DNS label: at most 50 characters, so that a suffix still fits 63."""
    name = re.sub(r"[^a-z0-9]+", "-", (plan.container.name or plan.lane).lower()).strip("-")
    return (name if name[:1].isalpha() else f"lane-{name}")[:50].rstrip("-")


def quantity(text: str) -> str | None:
    """`16g` → `16Gi`: Docker counts in powers of 1024. None where it is not a whole number of a unit."""
    size = parse_size(text)
    return f"{size.number}{_UNITS[size.unit]}" if size is not None and size.number.isdecimal() else None


def user_ids(user: str | None) -> tuple[int | None, int | None]:
    """`1000:1000` → both ids; nothing for names, which only the image knows."""
    found = _USER.fullmatch(user or "")
    return (int(found[1]), int(found[2]) if found[2] else None) if found else (None, None)


def is_annotation(key: str) -> bool:
    """May the key of a label of Docker's be the key of an annotation?"""
    return _ANNOTATION.fullmatch(key) is not None


def annotations(container: ContainerPlan) -> dict[str, str]:
    """Docker's labels; labels of Kubernetes are for selecting, and take few characters."""
    return {key: value for key, value in container.labels.items() if is_annotation(key)}


Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Volume:
    """An entry of `volumes` and the one of `volumeMounts` that belongs to it."""

    source: Object
    mount: Object


def volumes(plan: Plan) -> tuple[Volume, ...]:
    """All of them, in the order of the mounts."""
    c = plan.container
    found = [_bind(f"mount-{n}", mount, plan) for n, mount in enumerate(binds(c))]
    if has_own_shm(c):
        found.append(_memory("shm", "/dev/shm", quantity(c.shm_size or "")))  # noqa: S108 - the container's
    for n, word in enumerate(c.tmpfs):
        path, size = tmpfs_parts(word)
        found.append(_memory(f"tmpfs-{n}", path, size))
    return tuple(found)


def has_own_shm(c: ContainerPlan) -> bool:
    """With the host's IPC, /dev/shm is the host's, whatever `--shm-size` says: Docker does the same."""
    return c.shm_size is not None and c.ipc != "host" and quantity(c.shm_size) is not None


def tmpfs_parts(word: str) -> tuple[str, str | None]:
    """`/tmp:size=1g` → path and quantity."""
    path, _, options = word.partition(":")
    sizes = [option.removeprefix("size=") for option in options.split(",") if option.startswith("size=")]
    return path, quantity(sizes[-1]) if sizes else None


def is_guessed(mount: Mount, plan: Plan) -> bool:
    """Is it only the target's suffix that says that the source is a file?"""
    return mount.sha256 is None and mount.source != plan.model_path and bool(PurePosixPath(mount.target).suffix)


def _type(mount: Mount, plan: Plan) -> str:
    """A source of another type is refused, a missing one too."""
    return "File" if isinstance(mount.sha256, str) or is_guessed(mount, plan) else "Directory"


def _bind(name: str, mount: Mount, plan: Plan) -> Volume:
    source = {"name": name, "hostPath": {"path": mount.source, "type": _type(mount, plan)}}
    return Volume(source, {"name": name, "mountPath": mount.target} | ({"readOnly": True} if mount.read_only else {}))


def _memory(name: str, path: str, size: str | None) -> Volume:
    limit = {"sizeLimit": size} if size else {}
    return Volume({"name": name, "emptyDir": {"medium": "Memory"} | limit}, {"name": name, "mountPath": path})


def tmpfs_rest(c: ContainerPlan) -> Iterator[str]:
    """Options of tmpfs mounts that a memory-backed volume does not have."""
    for word in c.tmpfs:
        for option in filter(None, word.partition(":")[2].split(",")):
            if not (option.startswith("size=") and quantity(option.removeprefix("size="))):
                yield option
