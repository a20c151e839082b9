"""The files of a cache directory, as a port: they belong to root where the engine runs as root, which it does."""

from pathlib import Path
from typing import Protocol

from gb300serve.core.errors import MachineError


class CacheDeniedError(MachineError):
    """The file belongs to another user (the engine's sets are root's, mode 0600)."""

    def __init__(self, path: Path, what: str, command: str) -> None:
        super().__init__(f"{path} cannot be {what}: it belongs to another user", hint=f"run it as root: {command}")
        self.path = path


class CacheUnusableError(MachineError):
    """Something else is wrong with a file of the cache."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}", hint="see `gb300serve cache list`; the site file's `cache` names it")


class CacheFiles(Protocol):
    """Raises CacheDeniedError and CacheUnusableError."""

    def names(self, directory: Path) -> tuple[str, ...]:
        """Sorted; none where there is no such directory."""

    def written_at(self, path: Path) -> float | None:
        """Seconds since 1970; None where there is no such file."""

    def read(self, path: Path) -> bytes: ...

    def write(self, path: Path, data: bytes) -> None:
        """The whole file or nothing, readable by its owner alone; directories are made."""

    def keep_aside(self, path: Path, aside: Path) -> None:
        """Give the file a second name, which outlives the next `write`; a file of that name is never overwritten."""
