"""Follow a container's log through dropped connections and restarts of the Docker Engine."""

import re
import struct
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, Self

from gb300serve.adapters.docker.client import DockerUnreachableError, NoSuchContainerError
from gb300serve.adapters.docker.inspect import NANO, nanoseconds
from gb300serve.core.ports import Clock
from gb300serve.lifecycle.backend import PATIENCE, LogLine

Stream = Literal["stdout", "stderr"]
_HEADER = struct.Struct(">BxxxL")
_STREAMS: dict[int, Stream] = {0: "stdout", 1: "stdout", 2: "stderr"}
# How far back a new connection requests lines again: timestamps of the two streams are not strictly ordered.
OVERLAP = NANO
# If a log is rotated while it is followed, the Engine (28.2, both of its log drivers) sometimes repeats lines of the
# file: at most as many as a file of the usual 10 MB has.
REMEMBERED = 50_000
_DIGITS = 9
# A terminal's log has no frames: the pieces of a line begin with a timestamp. Shorter lines have one piece.
_STAMPED = re.compile(rb"(?=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z )")
_CUT = 16384


class LogEntry(NamedTuple):  # a dataclass takes four times as long to create, up to 1,000 times per second
    """One line that the container ended with a line feed. `stamp` is nanoseconds since 1970."""

    stamp: int
    stream: Stream
    text: str

    def lines(self, started: int) -> tuple[LogLine, ...]:
        """Split at carriage returns: each state of a progress bar is a line."""
        elapsed = max(0, self.stamp - started) / NANO
        if "\r" not in self.text:
            return (LogLine(self.text, elapsed, self.stream),)
        states = [state for state in self.text.split("\r") if state]
        return tuple(LogLine(state, elapsed, self.stream) for state in states or [""])


def frames(data: bytes) -> tuple[list[tuple[Stream, bytes]], bytes]:
    """The complete frames of a multiplexed stream (header of eight bytes: stream, length), and the rest."""
    found: list[tuple[Stream, bytes]] = []
    at = 0
    while len(data) - at >= _HEADER.size:
        kind, length = _HEADER.unpack_from(data, at)
        end = at + _HEADER.size + length
        if len(data) < end:
            break
        found.append((_STREAMS.get(kind, "stderr"), data[at + _HEADER.size : end]))
        at = end
    return found, data[at:]


class LogDecoder:
    """Bytes of `GET /containers/ID/logs?timestamps=1` → entries, independent of chunk boundaries.

    Without a terminal, data arrives in frames. The Engine splits lines at 16 KiB into frames with one timestamp, of
    which the last ends with a line feed (except with the log driver `local`). A terminal sends no headers.
    """

    def __init__(self, *, tty: bool = False) -> None:
        self._tty = tty
        self._buffer = b""
        self._begun: dict[Stream, tuple[int, list[bytes]]] = {}
        self._second, self._whole = b"", 0

    def feed(self, data: bytes) -> list[LogEntry]:
        self._buffer += data
        pieces: Iterable[tuple[Stream, bytes]]
        if self._tty:
            pieces = self._plain_lines()
        else:
            pieces, self._buffer = frames(self._buffer)
        return [entry for stream, piece in pieces for entry in self._taken(stream, piece)]

    def flush(self) -> Iterator[LogEntry]:
        """The last line, if it has no line feed."""
        if self._tty:
            yield from (entry for piece in _pieces(self._buffer) for entry in self._taken("stdout", piece))
            self._buffer = b""
        for stream, (stamp, pieces) in self._begun.items():
            yield LogEntry(stamp, stream, _text(pieces))
        self._begun.clear()

    def _plain_lines(self) -> Iterator[tuple[Stream, bytes]]:
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            yield from (("stdout", piece) for piece in _pieces(line + b"\n"))

    def _taken(self, stream: Stream, frame: bytes) -> tuple[LogEntry, ...]:
        """The lines that the frame ends: by its line feed, or the previous one by a different timestamp."""
        written, _, piece = frame.partition(b" ")
        stamp = self._moment(written)
        if not self._begun and piece.endswith(b"\n"):  # nearly every line, up to 1,000 per second
            return (LogEntry(stamp, stream, piece[:-1].decode("utf-8", "replace")),)
        ended: tuple[LogEntry, ...] = ()
        begun = self._begun.pop(stream, None)
        if begun is not None and begun[0] != stamp:
            ended, begun = (LogEntry(begun[0], stream, _text(begun[1])),), None
        pieces = [] if begun is None else begun[1]
        pieces.append(piece)
        if piece.endswith(b"\n"):
            return (*ended, LogEntry(stamp, stream, _text(pieces)))
        self._begun[stream] = stamp, pieces
        return ended

    def _moment(self, written: bytes) -> int:
        """The second is nearly always that of the previous line; parsing it again takes 1 us."""
        second, fraction = written[:20], written[20:-1]
        if second == self._second and len(fraction) == _DIGITS and fraction.isdigit():
            return self._whole + int(fraction)
        self._second, self._whole = second, nanoseconds(f"{second.decode('ascii', 'replace')}0Z")
        return nanoseconds(written.decode("ascii", "replace"))


def _pieces(line: bytes) -> list[bytes]:
    if len(line) <= _CUT:
        return [line] if line else []
    return [piece for piece in _STAMPED.split(line) if piece]


def _text(pieces: list[bytes]) -> str:
    return b"".join(pieces).removesuffix(b"\n").decode("utf-8", "replace")


class Delivered:
    """The lines that were delivered already, as far back as they can be sent again."""

    def __init__(self, since: int) -> None:
        self._newest = since
        self._since = since
        self._recent: deque[tuple[int, int]] = deque()
        """Timestamps and hashes: at most 6 MB."""
        self._again: Counter[int] = Counter()
        self._last: dict[Stream, tuple[int, int]] = {}

    def resume(self) -> int:
        """From when to request lines; repeated ones are recognised."""
        since = max(self._since, self._newest - OVERLAP)
        self._expect_again(since)
        return since

    def is_new(self, entry: LogEntry) -> bool:
        key = hash(entry)
        last, last_key = self._last.get(entry.stream, (0, 0))
        if entry.stamp < last:
            self._expect_again(entry.stamp)
        elif entry.stamp == last and key == last_key:  # no stream writes the same line twice within a nanosecond
            return False
        self._last[entry.stream] = entry.stamp, key
        if self._again.get(key, 0) > 0:
            self._again[key] -= 1
            return False
        self._newest = max(self._newest, entry.stamp)
        self._recent.append((entry.stamp, key))
        while len(self._recent) > REMEMBERED and self._recent[0][0] < self._newest - OVERLAP:
            self._recent.popleft()
        return True

    def _expect_again(self, since: int) -> None:
        self._again = Counter(key for stamp, key in self._recent if stamp >= since)


# A container can write before the Engine registers its start: longer than the hundreds of milliseconds of a loaded
# machine, and shorter than a stop and start of an engine.
EARLY = NANO
# Docker waits 0.1 s before a restart policy starts a container again, and continues the same stream: lines after such
# a pause may belong to the next start.
PAUSE = NANO // 10


@dataclass(frozen=True, slots=True)
class Start:
    """The last start of a container, and when the one before it ended. Nanoseconds since 1970, 0 for never."""

    at: int
    ended: int
    running: bool
    tty: bool = False

    @property
    def log_from(self) -> int:
        """The time of its first lines. The last lines of an earlier start may be stamped a little after its end."""
        return max(0, self.at - EARLY, (self.ended + self.at) // 2)


class Chunks(Protocol):
    """A response as it arrives."""

    def next(self, timeout: float) -> bytes | None:
        """The next chunk, empty if none arrived within `timeout` seconds; None at the end."""


class OpenChunks(Chunks, Protocol):
    """Chunks as a context manager that closes them."""

    def __enter__(self) -> Chunks: ...

    def __exit__(self, *error: Any) -> None: ...


class LogSource(Protocol):
    """Where a container's log comes from. Raises BackendError."""

    def last_start(self, container: str) -> Start: ...

    def started_at(self, container: str) -> int:
        """Start of the running process in nanoseconds since 1970, else 0. Cheaper than `last_start`."""

    def open_log(
        self, container: str, since: int, *, live: bool, entries: int | None = None
    ) -> AbstractContextManager[Chunks]:
        """The last `entries` entries since then, or all; `live`: continue until the container ends."""


class Follower:
    """The log of a container since its last start, each line once."""

    def __init__(self, source: LogSource, clock: Clock, container: str) -> None:
        self._source = source
        self._clock = clock
        self._container = container
        self._start = source.last_start(container)
        self._delivered = Delivered(self._start.log_from)
        self._lost_at: float | None = None

    def follow(self, every: float) -> Iterator[LogLine | None]:
        """Until the container ends or is removed; None after every `every` seconds without lines."""
        ended = not self._start.at
        while not ended:
            try:
                yield from self._lines(every, live=True)
                now = self._source.last_start(self._container)
                ended = not (now.running and now.at == self._start.at)  # otherwise the connection was lost
                if ended:  # The stream may end before the last lines.
                    yield from self._lines(every, live=False, before=now.log_from if now.at != self._start.at else None)
            except NoSuchContainerError:
                return
            except DockerUnreachableError:
                self._lost_at = self._clock.now() if self._lost_at is None else self._lost_at
                if self._clock.now() - self._lost_at > PATIENCE:
                    raise
                ended = False
                self._clock.sleep(min(every, 1.0))
                yield None

    def log(self, entries: int | None) -> Iterator[LogLine]:
        """The present log: the last `entries` entries, or all."""
        if self._start.at:
            opened = self._source.open_log(self._container, self._start.log_from, live=False, entries=entries)
            for together in self._pieces(opened, PATIENCE):
                for entry in together or ():
                    yield from entry.lines(self._start.at)

    def _lines(self, every: float, *, live: bool, before: int | None = None) -> Iterator[LogLine | None]:
        """New lines; `before` is the time of the next start."""
        opened = self._source.open_log(self._container, self._delivered.resume(), live=live)
        self._lost_at = None
        newest = self._start.at
        for entries in self._pieces(opened, every, whole=not live):
            paused = entries is None
            for entry in entries or ():
                paused = paused or entry.stamp - newest >= PAUSE
                newest = max(newest, entry.stamp)
            # A whole chunk was written before this request; a request per line would take minutes for a week's log.
            if live and paused and self._source.started_at(self._container) != self._start.at:
                return
            if entries is None:
                yield None
            for entry in entries or ():
                if self._delivered.is_new(entry) and (before is None or entry.stamp < before):
                    yield from entry.lines(self._start.at)

    def _pieces(
        self, opened: AbstractContextManager[Chunks], every: float, *, whole: bool = True
    ) -> Iterator[Iterable[LogEntry] | None]:
        """Entries that arrived together; None after silence. `whole`: include a last line without a line feed."""
        decoder = LogDecoder(tty=self._start.tty)
        with opened as chunks:
            while (chunk := chunks.next(every)) is not None:
                yield decoder.feed(chunk) if chunk else None
        if whole:
            yield tuple(decoder.flush())


# Seconds. Data and the end of the stream wake the thread.
_LONG = 3600.0
# A line of the engine has at most 5 kB; anything longer is not a bar.
_LONGEST = 65536


class BarText:
    """Bytes of an attach stream → the newest state of each stream's unfinished line."""

    def __init__(self, *, tty: bool = False) -> None:
        self._tty = tty
        self._buffer = b""
        self._open: dict[str, bytes] = {}
        self._shown: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        """Process data; complete lines are skipped, because the log contains them."""
        if self._tty:
            self._draw("stdout", data)
            return
        found, self._buffer = frames(self._buffer + data)
        for stream in {stream for stream, _ in found}:
            self._draw(stream, b"".join(payload for of, payload in found if of == stream))

    def fresh(self) -> tuple[str, ...]:
        """States that changed since the last call."""
        found = []
        for stream, rest in self._open.items():
            state = next((piece for piece in reversed(rest.split(b"\r")) if piece.strip()), b"")
            text = state.decode("utf-8", "replace")
            if text and b"\r" in rest and text != self._shown.get(stream):
                self._shown[stream] = text
                found.append(text)
        return tuple(found)

    def _draw(self, stream: str, payload: bytes) -> None:
        rest = (self._open.get(stream, b"") + payload).rpartition(b"\n")[2]
        # Only the last two states are needed.
        last = rest.rfind(b"\r", 0, max(0, rest.rfind(b"\r")))
        self._open[stream] = rest[max(last, 0) :][-_LONGEST:]


class AttachedBars:
    """Implements `lifecycle.backend.Bars`. A thread reads, so that the container never blocks."""

    def __init__(self, opened: OpenChunks, *, tty: bool = False) -> None:
        self._opened = opened
        self._text = BarText(tty=tty)
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._read, name="docker-bars", daemon=True)

    def __enter__(self) -> Self:
        self._chunks = self._opened.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._opened.__exit__(*error)
        self._thread.join()

    def fresh(self) -> tuple[str, ...]:
        with self._guard:
            return self._text.fresh()

    def _read(self) -> None:
        while (data := self._chunks.next(_LONG)) is not None:
            with self._guard:
                self._text.feed(data)
