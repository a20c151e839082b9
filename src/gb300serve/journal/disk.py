"""Files of the state directory as a port, so that tests can cut any write short or fill the disk."""

from pathlib import Path
from typing import Protocol

from gb300serve.core.errors import MachineError


class AppendFile(Protocol):
    """A file that only grows. `write` and `sync` may raise OSError."""

    def write(self, data: bytes) -> None:
        """All of it, or as much as fits before the error."""

    def sync(self) -> None: ...

    def close(self) -> None: ...


class Hold(Protocol):
    """A lock that is held; the system lets go of it when the process dies, however it dies."""

    def release(self) -> None: ...


class JournalDisk(Protocol):
    """Every call may raise OSError. Files are readable by their user alone (0600, directories 0700)."""

    def make(self, directory: Path) -> None:
        """The directory and those above it; nothing where it is there."""

    def claim(self, directory: Path) -> bool:
        """Make it; False where something has its name."""

    def names(self, directory: Path) -> tuple[str, ...]:
        """What is in it, sorted; nothing where it is not there."""

    def read(self, path: Path) -> bytes | None:
        """None where it is not there."""

    def open(self, path: Path) -> AppendFile:
        """To append to it; made where it is not there."""

    def replace(self, path: Path, data: bytes) -> None:
        """Whole, or not at all: a reader sees the old content or the new."""

    def overwrite(self, path: Path, data: bytes) -> None:
        """In place, for a file that is locked: its readers must expect half of it."""

    def truncate(self, path: Path, size: int) -> None: ...

    def remove(self, path: Path) -> None:
        """A file, or a directory with all that is in it; nothing where it is not there."""

    def try_hold(self, path: Path) -> Hold | None:
        """Lock the file (made where it is not there); None while another holds it."""


class StateUnusableError(MachineError):
    """Nothing that is launched could be written down."""

    def __init__(self, directory: Path, reason: str) -> None:
        super().__init__(
            f"{directory} cannot be written: {reason}; nothing was launched",
            hint="make room or see who may write there, or name another directory: `state` in the site file",
        )
