"""`/proc/PID/cgroup`: the container that a process belongs to (cgroups(7); Docker, containerd and Podman)."""

import re

# `…/docker-<id>.scope` (systemd), `…/docker/<id>` (cgroupfs), `…:cri-containerd:<id>`, `…/libpod-<id>.scope`.
_CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def path(pid: int) -> str:
    """The file of a process."""
    return f"/proc/{pid}/cgroup"


def container(text: str) -> str | None:
    """The container's full id; None for a process of the host itself."""
    found = _CONTAINER.search(text)
    return found[0] if found else None
