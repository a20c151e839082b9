"""Bind mounts, shared memory and tmpfs as volumes of a pod. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from gb300serve.plan.model import ContainerPlan, Mount, Plan
from gb300serve.render.kubernetes_words import quantity
from gb300serve.render.target import binds

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
