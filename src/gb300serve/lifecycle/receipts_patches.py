"""Mounted patches: the sha256 of what the container really sees, where its backend can tell."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Protocol, runtime_checkable

from gb300serve.boot.receipts import CheckedReceipt, ReceiptState
from gb300serve.core.errors import BackendError
from gb300serve.lifecycle.ports import ContainerBackend
from gb300serve.plan.model import Plan


@runtime_checkable
class ReadsFiles(Protocol):
    """A backend that can look into a container. Raises BackendError where it cannot tell."""

    def file_sha256(self, container: str, path: str) -> str | None:
        """64 hexadecimal digits of the file at `path` in the container; None where there is no such file."""


def patches(plan: Plan) -> Iterator[tuple[str, str]]:
    """Paths in the container of files that the recipe pins, with their sha256."""
    for mount in plan.container.mounts:
        if isinstance(mount.sha256, str):
            yield mount.target, mount.sha256
        elif mount.sha256:
            for name, digest in mount.sha256.items():
                yield str(PurePosixPath(mount.target) / name), digest


def check_patches(plan: Plan, container: str, backend: ContainerBackend) -> tuple[CheckedReceipt, ...]:
    """One receipt for each pinned file."""
    return tuple(_check(path, digest, container, backend) for path, digest in patches(plan))


def _check(path: str, digest: str, container: str, backend: ContainerBackend) -> CheckedReceipt:
    name = f"sha256 of {path} in the container"
    if not isinstance(backend, ReadsFiles):
        return CheckedReceipt(name, "unknown", kind="patch", expected=digest, found="nobody can look into it here")
    try:
        found = backend.file_sha256(container, path)
    except BackendError as error:
        return CheckedReceipt(name, "unknown", kind="patch", expected=digest, found=error.message)
    state: ReceiptState = "missing" if found is None else "kept" if found == digest else "different"
    return CheckedReceipt(name, state, kind="patch", expected=digest, found=found)
