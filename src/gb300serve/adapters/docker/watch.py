"""What the Docker Engine tells of a running container beside its log: CPU time, live bars, files, stacks."""

import hashlib
import io
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import PurePosixPath
from types import TracebackType
from typing import Self
from urllib.parse import quote

from gb300serve.adapters.docker.backend import DockerApi, DockerBackend, OpenChunks
from gb300serve.adapters.docker.errors import DockerRefusedError
from gb300serve.adapters.docker.inspect import NANO
from gb300serve.adapters.docker.logs import frames
from gb300serve.core.ports import Clock
from gb300serve.lifecycle.backend import Bars, Vitals

# Seconds. It is woken by what comes, and by the end.
_LONG = 3600.0
# A line of the engine is 5 kB at most; whatever is longer is no bar.
_LONGEST = 65536


class BarText:
    """Bytes of an attach stream → the newest state of the line that is still being drawn on each stream."""

    def __init__(self, *, tty: bool = False) -> None:
        self._tty = tty
        self._buffer = b""
        self._open: dict[str, bytes] = {}
        self._told: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        """Take what came; whole lines are the log's to tell, and are left out."""
        if self._tty:
            self._draw("stdout", data)
            return
        found, self._buffer = frames(self._buffer + data)
        for stream in {stream for stream, _ in found}:
            self._draw(stream, b"".join(payload for of, payload in found if of == stream))

    def fresh(self) -> tuple[str, ...]:
        """States that moved since the last call."""
        found = []
        for stream, rest in self._open.items():
            state = next((piece for piece in reversed(rest.split(b"\r")) if piece.strip()), b"")
            text = state.decode("utf-8", "replace")
            if text and b"\r" in rest and text != self._told.get(stream):
                self._told[stream] = text
                found.append(text)
        return tuple(found)

    def _draw(self, stream: str, payload: bytes) -> None:
        rest = (self._open.get(stream, b"") + payload).rpartition(b"\n")[2]
        # What stands before the last two states has been drawn over.
        last = rest.rfind(b"\r", 0, max(0, rest.rfind(b"\r")))
        self._open[stream] = rest[max(last, 0) :][-_LONGEST:]


class AttachedBars:
    """Implements `lifecycle.watch_ports.Bars`; a context manager. A thread reads, so that the container never waits."""

    def __init__(self, opened: OpenChunks, *, tty: bool = False) -> None:
        self._opened = opened
        self._text = BarText(tty=tty)
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._read, name="docker-bars", daemon=True)

    def __enter__(self) -> Self:
        self._chunks = self._opened.__enter__()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, trace)
        self._thread.join()

    def fresh(self) -> tuple[str, ...]:
        with self._guard:
            return self._text.fresh()

    def _read(self) -> None:
        while (data := self._chunks.next(_LONG)) is not None:
            with self._guard:
                self._text.feed(data)


class NoBars:
    """For an Engine that does not let anybody attach."""

    def fresh(self) -> tuple[str, ...]:
        return ()


# Seconds that a stack dump or a small file may take to come.
PATIENCE = 30.0
_PY_SPY = ("py-spy", "dump", "--pid", "1", "--subprocesses")
_NOT_THERE = frozenset({126, 127})
_LINKS = 5


def unknown() -> float | None:
    """For GPUs that nobody can look at from here."""
    return None


class WatchedDocker(DockerBackend):
    """Satisfies `TellsVitals`, `KnowsProcesses`, `ShowsBars`, `DumpsStacks` and `ReadsFiles` too.

    `gpu_use` gives 0 to 1, or None where nobody knows.
    """

    def __init__(self, engine: DockerApi, clock: Clock, gpu_use: Callable[[], float | None] = unknown) -> None:
        super().__init__(engine, clock)
        self._gpu_use = gpu_use

    def vitals(self, container: str) -> Vitals:
        """One look: without `one-shot` the Engine would take a second for two."""
        stats = self._engine.get(f"{_path(container)}/stats", {"stream": 0, "one-shot": 1})
        spent = stats.get("cpu_stats", {}).get("cpu_usage", {}).get("total_usage")
        seconds = None if spent is None else spent / NANO
        return Vitals(seconds, self._gpu_use(), self._glance(container).get("RestartCount", 0))

    def processes(self, container: str) -> frozenset[int]:
        """As `docker top` shows them."""
        told = self._engine.get(f"{_path(container)}/top", {"ps_args": "-eo pid"})
        return frozenset(int(row[0]) for row in told.get("Processes") or () if row and str(row[0]).isdecimal())

    def bars(self, container: str) -> AbstractContextManager[Bars]:
        return self._bars(container)

    @contextmanager
    def _bars(self, container: str) -> Iterator[Bars]:
        try:
            tty = bool(self._inspect(container)["Config"]["Tty"])
            opened = self._engine.stream(
                f"{_path(container)}/attach", {"stream": 1, "stdout": 1, "stderr": 1}, method="POST"
            )
        except DockerRefusedError:
            yield NoBars()
            return
        with AttachedBars(opened, tty=tty) as bars:
            yield bars

    def stack_command(self, container: str) -> str:
        name = str(self._inspect(container)["Name"]).lstrip("/")
        pid = f"$(docker inspect --format '{{{{.State.Pid}}}}' {name})"
        return f"docker exec {name} {' '.join(_PY_SPY)}  (or on the host: sudo py-spy dump --subprocesses --pid {pid})"

    def stacks(self, container: str) -> str | None:
        body = {"AttachStdout": True, "AttachStderr": True, "Cmd": list(_PY_SPY)}
        run = self._engine.post(f"{_path(container)}/exec", {}, body)["Id"]
        try:
            said = self._whole(f"/exec/{run}/start", {}, {"Detach": False, "Tty": False})
        except DockerRefusedError:
            return None
        text = b"".join(payload for _, payload in frames(said)[0]).decode("utf-8", "replace")
        return None if self._engine.get(f"/exec/{run}/json").get("ExitCode") in _NOT_THERE else text.strip() or None

    def file_sha256(self, container: str, path: str) -> str | None:
        """From the archive API, which sees what the container sees, mounts included."""
        place = PurePosixPath(path)
        for _ in range(_LINKS):
            try:
                archive = self._whole(f"{_path(container)}/archive", {"path": str(place)})
            except DockerRefusedError as error:
                if error.status == 404:
                    return None
                raise
            digest, link = _first(archive)
            if link is None:
                return digest
            place = place.parent / link
        return None

    def _whole(self, path: str, params: dict[str, str], body: dict[str, bool] | None = None) -> bytes:
        pieces = []
        with self._engine.stream(path, params, method="GET" if body is None else "POST", body=body) as chunks:
            while (piece := chunks.next(PATIENCE)) is not None:
                if not piece:
                    break  # nothing came for so long: what is there has to do
                pieces.append(piece)
        return b"".join(pieces)


def _first(archive: bytes) -> tuple[str | None, str | None]:
    """The sha256 of the first file of a tar archive, or where it leads to if it is a link."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        member = tar.next()
        if member is None or member.isdir():
            return None, None
        if member.issym():
            return None, member.linkname
        file = tar.extractfile(member)
        return (hashlib.sha256(file.read()).hexdigest() if file else None), None


def _path(container: str) -> str:
    return f"/containers/{quote(container, safe='')}"
