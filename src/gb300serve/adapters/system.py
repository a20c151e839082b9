"""Clock, disk, signals, threads and cache files of this machine."""

import errno
import fcntl
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias, TypeVar

from gb300serve.autotune.sets import CacheDeniedError, CacheUnusableError
from gb300serve.core.errors import Gb300Error, MachineError
from gb300serve.core.files import PRIVATE, write_atomically
from gb300serve.journal.journal import AppendFile, HeldLock, Requester


class SystemClock:
    """Implements `core.ports.Clock`."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class SystemDisk:
    """Each call returns after the kernel has the data, so a killed process loses nothing; `sync` waits for the disk."""

    def make(self, directory: Path) -> None:
        missing = [path for path in (directory, *directory.parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
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
            return tuple(sorted(path.name for path in directory.iterdir()))
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
        return _AppendOnlyFile(os.open(path, _APPEND, PRIVATE))

    def replace(self, path: Path, data: bytes) -> None:
        write_atomically(path, data, PRIVATE, fsync=True)

    def overwrite(self, path: Path, data: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
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

    def try_hold(self, path: Path) -> HeldLock | None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return _FileLock(descriptor)


class _AppendOnlyFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        _write(self._descriptor, data)

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class _FileLock:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        os.close(self._descriptor)


def _refuse_pipes(path: Path) -> None:
    """Opening a pipe blocks until its other end is opened."""
    if stat.S_ISFIFO(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is a pipe", str(path))


def _write(descriptor: int, data: bytes) -> None:
    """If the disk fills up, `os.write` writes only a part; the next call raises the error."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


_Handler: TypeAlias = "Callable[[int, FrameType | None], Any] | int | None"
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def _handling(handler: _Handler) -> Iterator[None]:
    before = _set(dict.fromkeys(_STOP_SIGNALS, handler))
    try:
        yield
    finally:
        _set(before)


def once() -> AbstractContextManager[None]:
    """The first SIGINT or SIGTERM raises KeyboardInterrupt; later ones are ignored until the context ends."""

    def first(_number: int, _frame: FrameType | None) -> None:
        _set(dict.fromkeys(_STOP_SIGNALS, _ignored))
        raise KeyboardInterrupt

    return _handling(first)


def uninterrupted() -> AbstractContextManager[None]:
    """SIGINT and SIGTERM are ignored until the context ends."""
    return _handling(_ignored)


def _ignored(_number: int, _frame: FrameType | None) -> None:
    """Not SIG_IGN: programs that are started meanwhile would inherit it."""


def _set(handlers: dict[signal.Signals, _Handler]) -> dict[signal.Signals, _Handler]:
    """Returns the previous handlers."""
    return {number: signal.signal(number, handler) for number, handler in handlers.items()}


def asker(variables: Mapping[str, str]) -> Requester:
    """The user (under sudo, the one who called sudo), by number if it has no name."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return Requester(variables.get("SUDO_USER") or name, socket.gethostname(), os.getpid())


K = TypeVar("K")
T = TypeVar("T")


def at_once(asks: Mapping[K, Callable[[], T]], patience: float) -> dict[K, T | Gb300Error | None]:
    """Each call's result, its Gb300Error, or None after `patience` seconds; other errors are raised.

    Each call has its own thread. After a timeout it continues unobserved and ends with the process.
    """
    answers: dict[K, T | Exception] = {}

    def answer(key: K, ask: Callable[[], T]) -> None:
        try:
            answers[key] = ask()
        except Exception as error:  # noqa: BLE001 - a thread has no caller: it is raised below
            answers[key] = error

    threads = [threading.Thread(target=answer, args=call, daemon=True) for call in asks.items()]
    for thread in threads:
        thread.start()
    until = time.monotonic() + patience
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    results: dict[K, T | Gb300Error | None] = {}
    for key in asks:
        result = answers.get(key)
        if isinstance(result, Exception) and not isinstance(result, Gb300Error):
            raise result
        results[key] = result
    return results


class StateUnwritableError(MachineError):
    """The file cannot be written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot write {path}: {reason}", hint="`state` in the site file names another directory")


def read_document(path: Path) -> dict[str, Any]:
    """The object in the file; empty if the file does not exist or has other content."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write the file atomically, readable by its owner only; missing directories are created."""
    text = json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, text.encode("utf-8"), PRIVATE, fsync=True)
    except OSError as error:
        raise StateUnwritableError(path, error.strerror or str(error)) from error


class SystemCacheFiles:
    """Implements `CacheFiles`. `command` is the user's command, which an error suggests to repeat with sudo."""

    def __init__(self, command: str) -> None:
        self._command = command

    def names(self, directory: Path) -> tuple[str, ...]:
        try:
            with self._translated(directory, "listed"):
                return tuple(sorted(path.name for path in directory.iterdir()))
        except FileNotFoundError:
            return ()

    def written_at(self, path: Path) -> float | None:
        try:
            with self._translated(path, "inspected"):
                return path.stat().st_mtime
        except FileNotFoundError:
            return None

    def read(self, path: Path) -> bytes:
        with self._translated(path, "read"):
            return path.read_bytes()

    def write(self, path: Path, data: bytes) -> None:
        with self._translated(path, "written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data, PRIVATE, fsync=True)

    def back_up(self, path: Path, backup: Path) -> None:
        """A hard link, which fails if the name is taken; `write` replaces the file and leaves the link alone."""
        with self._translated(path, "backed up"):
            os.link(path, backup)

    @contextmanager
    def _translated(self, path: Path, what: str) -> Iterator[None]:
        try:
            yield
        except PermissionError as error:
            raise CacheDeniedError(path, what, f"sudo {self._command}") from error
        except NotADirectoryError as error:
            raise FileNotFoundError(*error.args) from error
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CacheUnusableError(path, error.strerror or str(error)) from error
