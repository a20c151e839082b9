"""The machine that this process runs on, as `host.ports.Machine`."""

import errno
import hashlib
import os
import resource
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from gb300serve.adapters.process import output, spoken
from gb300serve.core.errors import BackendError
from gb300serve.core.ports import Clock
from gb300serve.core.values import Missing
from gb300serve.host.collect import compute_processes, gpu_states
from gb300serve.host.facts import ContainerFact, Directory, FileEntry, ImageFact, ListeningSocket, Machine, Space
from gb300serve.host.linux import UNLIMITED, Limit, Socket, parse_listening_sockets
from gb300serve.lifecycle.backend import Container, ContainerBackend, GpuHeld, Listener, told_by
from gb300serve.lifecycle.launch import display_time


class HostGpuMemory:
    """GPU memory by container: nvidia-smi reports memory and processes, /proc the container of each."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def held(self) -> GpuHeld:
        return told_by(gpu_states(self._machine), compute_processes(self._machine))


_ARGV = ("nvidia-smi", "--query-gpu=memory.total,utilization.gpu", "--format=csv,noheader,nounits")
_PATIENCE = 5.0
# Seconds for which a reading is reused.
_FRESH = 10.0


def busy(text: str) -> float | None:
    """Utilization (0 to 1) of the GPU with the most memory (a Station's other GPU drives the display), or None."""
    return max(filter(None, map(_row, text.splitlines())), default=(0.0, None))[1]


def _row(line: str) -> tuple[float, float] | None:
    memory, _, use = line.partition(",")
    try:
        return float(memory), float(use) / 100
    except ValueError:
        return None  # `[N/A]`, `[Not Supported]`


class GpuUse:
    """Returns the GPU utilization (0 to 1), or None if unknown."""

    def __init__(self, clock: Clock, ask: Callable[[tuple[str, ...], float], str | None] = output) -> None:
        self._clock = clock
        self._ask = ask
        self._read_at: float | None = None
        self._value: float | None = None

    def __call__(self) -> float | None:
        now = self._clock.now()
        if self._read_at is None or now >= self._read_at + _FRESH:
            self._read_at = now
            self._value = busy(self._ask(_ARGV, _PATIENCE) or "")
        return self._value


PROC = Path("/proc")


class SystemListeners:
    """Implements `lifecycle.backend.Listeners` for the client's machine."""

    def each_on(self, port: int) -> tuple[Listener, ...]:
        tables = [table for name in ("tcp", "tcp6") if (table := PROC / "net" / name).exists()]
        if not tables:
            return () if _can_bind(port) else (Listener(port, "*"),)
        sockets = (found for table in tables for found in parse_listening_sockets(table.read_text(encoding="ascii")))
        return tuple(_listener(found) for found in sockets if found.port == port)


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("0.0.0.0", port))  # noqa: S104 - the engine binds every address; nothing listens here
        except OSError:
            return False
    return True


def _listener(found: Socket) -> Listener:
    target = f"socket:[{found.inode}]"
    for process in _processes():
        try:
            if any(str(entry.readlink()) == target for entry in (process / "fd").iterdir()):
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return Listener(found.port, found.address, f"{name}, process {process.name}", int(process.name))
        except OSError:
            continue  # it ended, or it belongs to another user
    return Listener(found.port, found.address)


def _processes() -> Iterator[Path]:
    with os.scandir(PROC) as entries:
        yield from (PROC / entry.name for entry in entries if entry.name.isdigit())


# Without persistence mode, every call loads the driver: seconds on a machine with eight GPUs.
PATIENCE = 20.0
# Where the driver's installer and Debian install programs, if the user's PATH lacks them.
_MORE_PATH = "/usr/local/bin:/usr/bin:/usr/sbin:/sbin"


class SystemMachine:
    """Files, programs and sockets of this machine, read-only. `path` is searched for programs; `patience`: seconds."""

    def __init__(self, path: str, patience: float = PATIENCE) -> None:
        self._path = path
        self._patience = patience

    def output(self, argv: tuple[str, ...]) -> str | Missing:
        program = self.program(argv[0])
        if program is None:
            return Missing(f"{argv[0]} is not on PATH")
        try:
            code, text = spoken((program, *argv[1:]), self._patience)
        except TimeoutError:
            return Missing(f"{argv[0]} did not respond within {self._patience:g} s")
        except OSError as error:
            return _missing(argv[0], error)
        first = next(iter(text.strip().splitlines()), f"exit code {code}")
        return text if code == 0 else Missing(f"{argv[0]} failed: {first}")

    def read(self, path: str) -> str | Missing:
        return _or_missing(path, lambda: Path(path).read_text(encoding="utf-8", errors="replace"))

    def begin(self, path: str, count: int) -> bytes | Missing:
        try:
            with Path(path).open("rb") as file:
                return file.read(count)
        except OSError as error:
            return _missing(path, error)

    def names(self, directory: str) -> tuple[str, ...] | Missing:
        return _or_missing(directory, lambda: tuple(sorted(path.name for path in Path(directory).iterdir())))

    def entry(self, path: str) -> FileEntry | Missing | None:
        where = Path(path)
        try:
            found = where.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return _missing(path, error)
        return FileEntry(os.path.realpath(path), found.st_size, where.is_dir())

    def space(self, path: str) -> Space | Missing:
        real = nearest(path)
        disk = _or_missing(real, lambda: os.statvfs(real))
        if isinstance(disk, Missing):
            return disk
        return Space(real, disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)

    def sha256(self, path: str) -> str | Missing:
        try:
            with Path(path).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            return _missing(path, error)

    def memlock(self) -> Limit | Missing:
        soft, hard = (
            UNLIMITED if value == resource.RLIM_INFINITY else value
            for value in resource.getrlimit(resource.RLIMIT_MEMLOCK)
        )
        return Limit(soft, hard)

    def program(self, name: str) -> str | None:
        return shutil.which(name, path=self._path) or shutil.which(name, path=_MORE_PATH)

    def listener(self, port: int) -> ListeningSocket | Missing | None:
        found = next(iter(SystemListeners().each_on(port)), None)
        return None if found is None else ListeningSocket(found.port, found.address, found.process)


def nearest(path: str) -> str:
    """The resolved path, or its nearest parent that exists."""
    where = Path(os.path.realpath(path))
    return str(next((path for path in (where, *where.parents) if path.exists()), where))


def refusal(directory: Path) -> str | None:
    """Why the system would refuse a new file in a directory, which may not exist yet; nothing is created."""
    above = Path(nearest(str(directory)))
    if not above.is_dir():
        return "it is a file" if directory.exists() else os.strerror(errno.ENOTDIR)
    if os.access(above, os.W_OK | os.X_OK):
        return None
    return os.strerror(errno.EROFS if os.statvfs(above).f_flag & os.ST_RDONLY else errno.EACCES)


def file_refusal(path: Path) -> str | None:
    """Why the system would refuse to write the file, if it exists."""
    if path.is_dir():
        return os.strerror(errno.EISDIR)
    return os.strerror(errno.EACCES) if path.exists() and not os.access(path, os.W_OK) else None


def writable(directory: Path) -> Directory:
    """Check that files can be created in a directory, which may not exist yet; nothing is created."""
    above = Path(nearest(str(directory)))
    problem = f"{above} is not writable" if above == directory else f"cannot create it: {above} is not writable"
    if not above.is_dir():
        problem = f"{above} is a file"
    return Directory(str(directory), None if above.is_dir() and os.access(above, os.W_OK | os.X_OK) else problem)


def usable_state(directory: Path, runs: Path, journal: Path) -> Directory:
    """Like `writable`, and the directory of runs and the journal below it are writable too."""
    found = writable(directory)
    if found.problem is not None:
        return found
    reason = file_refusal(journal)
    return Directory(str(directory), f"{journal}: {reason}" if reason else writable(runs).problem)


def _missing(what: str, error: OSError) -> Missing:
    return Missing(f"{what}: {error.strerror or error}")


T = TypeVar("T")


def _or_missing(path: str, read: Callable[[], T]) -> T | Missing:
    try:
        return read()
    except OSError as error:
        return _missing(path, error)


class BackendEngine:
    """`info` returns `GET /info` of the Docker Engine. After one failure, no further request is sent."""

    def __init__(self, backend: ContainerBackend, info: Callable[[], Mapping[str, Any]]) -> None:
        self._backend = backend
        self._info = info
        self._failure: Missing | None = None

    def info(self) -> Mapping[str, Any] | Missing:
        return self._request(self._info)

    def image(self, reference: str) -> ImageFact | Missing:
        return self._request(lambda: self._image(reference))

    def containers(self) -> Mapping[str, ContainerFact] | Missing:
        return self._request(lambda: {container.id: _fact(container) for container in self._backend.containers()})

    def _request(self, ask: Callable[[], T]) -> T | Missing:
        if self._failure is not None:
            return self._failure
        try:
            return ask()
        except BackendError as error:
            self._failure = Missing(error.message)
            return self._failure

    def _image(self, reference: str) -> ImageFact:
        image = self._backend.image(reference)
        tag, at, _ = reference.partition("@")
        if image is not None:
            return ImageFact(image.id, image.digests, image.architecture, image.entrypoint)
        tagged = self._backend.image(tag) if at else None
        return ImageFact(None, tagged=tagged.digests if tagged else None)


def _fact(container: Container) -> ContainerFact:
    since = None if container.started_at is None else display_time(container.started_at)
    return ContainerFact(container.name, container.image, since)
