"""Files of this machine as `journal.disk.JournalDisk`."""

import errno
import fcntl
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from gb300serve.journal.disk import AppendFile, Hold

_PRIVATE = 0o600
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class SystemDisk:
    """What is written has reached the system when a call returns (a killed process loses nothing); `sync` the disk."""

    def make(self, directory: Path) -> None:
        missing = [each for each in (directory, *directory.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)
        if not directory.is_dir():
            raise NotADirectoryError(20, "it is a file", str(directory))

    def claim(self, directory: Path) -> bool:
        try:
            directory.mkdir(mode=0o700)
        except FileExistsError:
            return False
        return True

    def names(self, directory: Path) -> tuple[str, ...]:
        try:
            return tuple(sorted(each.name for each in directory.iterdir()))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def read(self, path: Path) -> bytes | None:
        try:
            _refuse_pipes(path)
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, path: Path) -> AppendFile:
        with suppress(FileNotFoundError):
            _refuse_pipes(path)
        return _Tape(os.open(path, _APPEND, _PRIVATE))

    def replace(self, path: Path, data: bytes) -> None:
        fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
        try:
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _PRIVATE)
            try:
                _write(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            fresh.replace(path)
        except OSError:
            with suppress(OSError):
                fresh.unlink()
            raise

    def overwrite(self, path: Path, data: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        try:
            _write(descriptor, data)
            os.ftruncate(descriptor, len(data))
        finally:
            os.close(descriptor)

    def truncate(self, path: Path, size: int) -> None:
        os.truncate(path, size)

    def remove(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def try_hold(self, path: Path) -> Hold | None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return _Hold(descriptor)


class _Tape:
    """`journal.disk.AppendFile` over a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        _write(self._descriptor, data)

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class _Hold:
    """`journal.disk.Hold`: closing the descriptor lets go."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        os.close(self._descriptor)


def _refuse_pipes(path: Path) -> None:
    """Opening a pipe waits for its other end, for ever."""
    if stat.S_ISFIFO(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is a pipe", str(path))


def _write(descriptor: int, data: bytes) -> None:
    """`write` takes less than it was given when the disk fills up: the next call says why."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
