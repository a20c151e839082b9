"""A disk that is cut short: at its n-th write the process dies, or the disk is full from then on."""

import errno
from dataclasses import dataclass
from pathlib import Path

from gb300serve.adapters.system import SystemDisk
from gb300serve.journal.journal import AppendFile, HeldLock


class Killed(BaseException):
    """kill -9: nothing may catch it, nothing is cleaned up."""


def full() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


@dataclass
class FaultyDisk:
    """`journal.disk.JournalDisk` over a real one. `fault_at` counts changes from 1; `share` of the write still arrives.

    `killed`: the process dies there. Else every write from there on fails, until `heal` is called or something is
    removed.
    """

    fault_at: int | None = None
    share: float = 0.5
    killed: bool = False
    stays_full: bool = True
    changes: int = 0
    is_full: bool = False

    def __post_init__(self) -> None:
        self.real = SystemDisk()

    def heal(self) -> None:
        self.fault_at, self.is_full = None, False

    def make(self, directory: Path) -> None:
        self._change()
        self.real.make(directory)

    def claim(self, directory: Path) -> bool:
        self._change()
        return self.real.claim(directory)

    def names(self, directory: Path) -> tuple[str, ...]:
        return self.real.names(directory)

    def read(self, path: Path) -> bytes | None:
        return self.real.read(path)

    def open(self, path: Path) -> AppendFile:
        return FaultyTape(self, self.real.open(path))

    def replace(self, path: Path, data: bytes) -> None:
        self._change()
        self.real.replace(path, data)

    def overwrite(self, path: Path, data: bytes) -> None:
        error = self._fault()
        if error is not None:
            self.real.overwrite(path, data[: int(len(data) * self.share)])
            raise error
        self.real.overwrite(path, data)

    def truncate(self, path: Path, size: int) -> None:
        if self.killed:
            self._change()
        self.real.truncate(path, size)

    def remove(self, path: Path) -> None:
        if self.killed:
            self._change()
        self.real.remove(path)

    def try_hold(self, path: Path) -> HeldLock | None:
        return self.real.try_hold(path)

    def _change(self) -> None:
        error = self._fault()
        if error is not None:
            raise error

    def _fault(self) -> BaseException | None:
        """What happens to this change."""
        self.changes += 1
        if self.changes == self.fault_at and self.killed:
            return Killed()
        if self.changes == self.fault_at:
            self.is_full = self.stays_full
            return full()
        return full() if self.is_full else None


@dataclass
class FaultyTape:
    disk: FaultyDisk
    real: AppendFile

    def write(self, data: bytes) -> None:
        error = self.disk._fault()
        if error is not None:
            self.real.write(data[: int(len(data) * self.disk.share)])
            raise error
        self.real.write(data)

    def sync(self) -> None:
        self.disk._change()
        self.real.sync()

    def close(self) -> None:
        self.real.close()
