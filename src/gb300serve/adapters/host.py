"""The machine that this process runs on, as `host.ports.Machine`."""

import errno
import hashlib
import os
import resource
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from gb300serve.adapters.listeners import SystemListeners
from gb300serve.adapters.process import spoken
from gb300serve.core.errors import BackendError
from gb300serve.host.facts import ContainerFact, Directory, ImageFact, ListeningSocket
from gb300serve.host.linux import UNLIMITED, Limit
from gb300serve.host.missing import Missing
from gb300serve.host.ports import FileEntry, Space
from gb300serve.lifecycle.backend import Container, ContainerBackend
from gb300serve.lifecycle.launch import display_time

# Without persistence mode the driver is loaded for each call: seconds on a box with eight GPUs.
PATIENCE = 20.0
# Where the driver's installer and Debian put programs, for a user whose PATH lacks them.
_MORE_PATH = "/usr/local/bin:/usr/bin:/usr/sbin:/sbin"


class SystemMachine:
    """Files, programs and sockets of this machine; nothing is changed.

    `path` is where programs are looked for first, `patience` how many seconds each may take.
    """

    def __init__(self, path: str, patience: float = PATIENCE) -> None:
        self._path = path
        self._patience = patience

    def output(self, argv: tuple[str, ...]) -> str | Missing:
        program = self.program(argv[0])
        if program is None:
            return Missing(f"{argv[0]} is not on PATH")
        try:
            code, said = spoken((program, *argv[1:]), self._patience)
        except TimeoutError:
            return Missing(f"{argv[0]} did not answer within {self._patience:g} s")
        except OSError as error:
            return _missing(argv[0], error)
        first = next(iter(said.strip().splitlines()), f"exit code {code}")
        return said if code == 0 else Missing(f"{argv[0]} failed: {first}")

    def read(self, path: str) -> str | Missing:
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            return _missing(path, error)

    def begin(self, path: str, count: int) -> bytes | Missing:
        try:
            with Path(path).open("rb") as file:
                return file.read(count)
        except OSError as error:
            return _missing(path, error)

    def names(self, directory: str) -> tuple[str, ...] | Missing:
        try:
            return tuple(sorted(path.name for path in Path(directory).iterdir()))
        except OSError as error:
            return _missing(directory, error)

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
        try:
            found = os.statvfs(real)
        except OSError as error:
            return _missing(real, error)
        return Space(real, found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)

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

    def heard(self, port: int) -> ListeningSocket | Missing | None:
        found = SystemListeners().on(port)
        return None if found is None else ListeningSocket(found.port, found.address, found.process)


def nearest(path: str) -> str:
    """The path without links, or the nearest directory above it that exists."""
    where = Path(os.path.realpath(path))
    return str(next((each for each in (where, *where.parents) if each.exists()), where))


def refusal(directory: Path) -> str | None:
    """What the system would say to a file that is made in a directory that may not exist yet; nothing is made."""
    above = Path(nearest(str(directory)))
    if not above.is_dir():
        return "it is a file" if directory.exists() else os.strerror(errno.ENOTDIR)
    if os.access(above, os.W_OK | os.X_OK):
        return None
    return os.strerror(errno.EROFS if os.statvfs(above).f_flag & os.ST_RDONLY else errno.EACCES)


def file_refusal(path: Path) -> str | None:
    """What the system would say to a file that is written to, or made where its directory lets it."""
    if path.is_dir():
        return os.strerror(errno.EISDIR)
    return os.strerror(errno.EACCES) if path.exists() and not os.access(path, os.W_OK) else None


def writable(directory: Path) -> Directory:
    """Whether files can be made in a directory that may not exist yet; nothing is made."""
    above = Path(nearest(str(directory)))
    problem = None
    if not above.is_dir():
        problem = f"{above} is a file"
    elif not os.access(above, os.W_OK | os.X_OK):
        problem = f"{above} may not be written" if above == directory else f"{above} may not be written, to make it in"
    return Directory(str(directory), problem)


def usable_state(directory: Path, runs: Path, journal: Path) -> Directory:
    """As `writable`, with what has to be written below it: a directory of runs and a file."""
    found = writable(directory)
    if found.problem is not None:
        return found
    problem = writable(runs).problem
    if (refused := file_refusal(journal)) is not None:
        problem = f"{journal}: {refused}"
    return Directory(str(directory), problem)


def _missing(what: str, error: OSError) -> Missing:
    return Missing(f"{what}: {error.strerror or error}")


T = TypeVar("T")


class BackendEngine:
    """`info` gives what `GET /info` of the Docker Engine gives. Whoever did not answer once is not asked again."""

    def __init__(self, backend: ContainerBackend, info: Callable[[], Mapping[str, Any]]) -> None:
        self._backend = backend
        self._info = info
        self._silent: Missing | None = None

    def info(self) -> Mapping[str, Any] | Missing:
        return self._asked(self._info)

    def image(self, reference: str) -> ImageFact | Missing:
        return self._asked(lambda: self._image(reference))

    def containers(self) -> Mapping[str, ContainerFact] | Missing:
        return self._asked(lambda: {each.id: _fact(each) for each in self._backend.containers()})

    def _asked(self, ask: Callable[[], T]) -> T | Missing:
        if self._silent is not None:
            return self._silent
        try:
            return ask()
        except BackendError as error:
            self._silent = Missing(error.message)
            return self._silent

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
