"""Files of a tuning cache on this machine, as `autotune.ports.CacheFiles`."""

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
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Generic, TypeAlias, TypeVar

from gb300serve.autotune.sets import CacheDeniedError, CacheUnusableError
from gb300serve.core.errors import Gb300Error, MachineError
from gb300serve.core.files import PRIVATE, write_atomically
from gb300serve.journal.journal import AppendFile, HeldLock, Requester


class SystemClock:
    """`core.clock.Clock`, as the machine tells it."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


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
        return _Tape(os.open(path, _APPEND, PRIVATE))

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


_Handler: TypeAlias = "Callable[[int, FrameType | None], Any] | int | None"
_ASKING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def once() -> Iterator[None]:
    """The first of them raises KeyboardInterrupt; those that follow do nothing until the context ends."""

    def first(_number: int, _frame: FrameType | None) -> None:
        _set(dict.fromkeys(_ASKING, _ignored))
        raise KeyboardInterrupt

    before = _set(dict.fromkeys(_ASKING, first))
    try:
        yield
    finally:
        _set(before)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """None of them is heard until the context ends."""
    before = _set(dict.fromkeys(_ASKING, _ignored))
    try:
        yield
    finally:
        _set(before)


def _ignored(_number: int, _frame: FrameType | None) -> None:
    """A function and not SIG_IGN, which programs that are started meanwhile would inherit."""


def _set(handlers: dict[signal.Signals, _Handler]) -> dict[signal.Signals, _Handler]:
    """Returns those that were set before."""
    return {number: signal.signal(number, handler) for number, handler in handlers.items()}


def asker(variables: Mapping[str, str]) -> Requester:
    """Behind sudo, the one who said sudo; a user without a name by number."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return Requester(variables.get("SUDO_USER") or name, socket.gethostname(), os.getpid())


K = TypeVar("K")
T = TypeVar("T")


class _Question(Generic[T]):
    """One thread's; whoever is not waited for any more goes on unheard, and ends with the process."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self.answer: list[T | Exception] = []
        self.thread = threading.Thread(target=self._run, name="question", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.answer.append(self._ask())
        except Exception as error:  # noqa: BLE001 - nobody above a thread: whoever waits for the answer raises it
            self.answer.append(error)


def at_once(asks: Mapping[K, Callable[[], T]], patience: float) -> dict[K, T | Gb300Error | None]:
    """Each one's answer, or the error of ours that it raised, or None after `patience` seconds.

    Other errors are raised.
    """
    questions = {key: _Question(ask) for key, ask in asks.items()}
    until = time.monotonic() + patience
    found: dict[K, T | Gb300Error | None] = {}
    for key, question in questions.items():
        question.thread.join(max(0.0, until - time.monotonic()))
        answer = question.answer[0] if question.answer else None
        if isinstance(answer, Exception) and not isinstance(answer, Gb300Error):
            raise answer
        found[key] = answer
    return found


class StateUnwritableError(MachineError):
    """The file cannot be written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot write {path}: {reason}", hint="`state` in the site file names another directory")


def read_document(path: Path) -> dict[str, Any]:
    """The object in the file; empty where there is no file, or another thing in it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write the file atomically, for its owner alone; missing directories are created."""
    text = json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, text.encode("utf-8"), PRIVATE, fsync=True)
    except OSError as error:
        raise StateUnwritableError(path, error.strerror or str(error)) from error


class SystemCacheFiles:
    """`command` is what the user typed, to be repeated behind sudo."""

    def __init__(self, command: str) -> None:
        self._command = command

    def names(self, directory: Path) -> tuple[str, ...]:
        try:
            with self._told(directory, "listed"):
                return tuple(sorted(path.name for path in directory.iterdir()))
        except FileNotFoundError:
            return ()

    def written_at(self, path: Path) -> float | None:
        try:
            with self._told(path, "looked at"):
                return path.stat().st_mtime
        except FileNotFoundError:
            return None

    def read(self, path: Path) -> bytes:
        with self._told(path, "read"):
            return path.read_bytes()

    def write(self, path: Path, data: bytes) -> None:
        with self._told(path, "written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data, PRIVATE, fsync=True)

    def back_up(self, path: Path, backup: Path) -> None:
        """A hard link, which fails if the name is taken; `write` replaces the file and leaves the link alone."""
        with self._told(path, "backed up"):
            os.link(path, backup)

    @contextmanager
    def _told(self, path: Path, what: str) -> Iterator[None]:
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
