"""The Engine's log stream as lines: frames, timestamps, long lines in pieces, progress bars. Pure."""

import re
import struct
from collections import Counter, deque
from collections.abc import Iterator
from typing import Literal, NamedTuple

from gb300serve.adapters.docker_inspect import NANO, nanoseconds
from gb300serve.lifecycle.ports import LogLine

Stream = Literal["stdout", "stderr"]
_HEADER = struct.Struct(">BxxxL")
_STREAMS: dict[int, Stream] = {0: "stdout", 1: "stdout", 2: "stderr"}
# How far back a new connection asks again: the two streams are stamped apart, so neither is quite in order.
OVERLAP = NANO
# Where a log is rotated while it is followed, the Engine (28.2, both of its log drivers) goes back now and then and
# tells lines of that file once more: at most as many as a file of the usual 10 MB has.
REMEMBERED = 50_000
_DIGITS = 9
# A terminal's log has no frames: where the pieces of a line begin is seen by their stamps. Shorter lines are one piece.
_STAMPED = re.compile(rb"(?=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z )")
_CUT = 16384


class LogEntry(NamedTuple):  # a dataclass takes four times as long to make, a thousand times a second
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
    """The whole frames of a multiplexed stream (eight bytes of header: stream, length), and what is left of it."""
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
    """Bytes of `GET /containers/ID/logs?timestamps=1` → entries, whatever the pieces in which they arrive.

    Without a terminal, each frame has a header of eight bytes (stream, length); the Engine cuts lines at 16 KiB into
    frames with the stamp of the first, of which the last ends with a line feed (not with the log driver `local`, which
    keeps none behind such a line). With a terminal the same without headers.
    """

    def __init__(self, *, tty: bool = False) -> None:
        self._tty = tty
        self._buffer = b""
        self._begun: dict[Stream, tuple[int, list[bytes]]] = {}
        self._second, self._whole = b"", 0

    def feed(self, data: bytes) -> list[LogEntry]:
        self._buffer += data
        found = self._plain_lines() if self._tty else self._frames()
        return [entry for stream, frame in found for entry in self._taken(stream, frame)]

    def flush(self) -> Iterator[LogEntry]:
        """What the container wrote last, if it did not end it with a line feed."""
        if self._tty:
            yield from (entry for piece in _pieces(self._buffer) for entry in self._taken("stdout", piece))
            self._buffer = b""
        for stream, (stamp, pieces) in self._begun.items():
            yield LogEntry(stamp, stream, _text(pieces))
        self._begun.clear()

    def _frames(self) -> list[tuple[Stream, bytes]]:
        found, self._buffer = frames(self._buffer)
        return found

    def _plain_lines(self) -> Iterator[tuple[Stream, bytes]]:
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            yield from (("stdout", piece) for piece in _pieces(line + b"\n"))

    def _taken(self, stream: Stream, frame: bytes) -> tuple[LogEntry, ...]:
        """The lines that the frame ends: by its line feed, or the one before by being of another moment."""
        written, _, piece = frame.partition(b" ")
        stamp = self._moment(written)
        if not self._begun and piece.endswith(b"\n"):  # nearly every line, a thousand times a second
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
        """The second of a stamp is nearly always that of the line before: to read it anew takes 1 us."""
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
    """What was delivered already, as far back as a new connection asks again, or the Engine tells again by itself."""

    def __init__(self, since: int) -> None:
        self._newest = since
        self._since = since
        self._recent: deque[tuple[int, int]] = deque()
        """Stamps and hashes, which take 6 MB at most."""
        self._again: Counter[int] = Counter()
        self._last: dict[Stream, tuple[int, int]] = {}

    def resume(self) -> int:
        """From when to ask; until then, what comes again is known."""
        since = max(self._since, self._newest - OVERLAP)
        self._expect_again(since)
        return since

    def is_new(self, entry: LogEntry) -> bool:
        key = hash(entry)
        last, last_key = self._last.get(entry.stream, (0, 0))
        if entry.stamp < last:
            self._expect_again(entry.stamp)
        elif entry.stamp == last and key == last_key:  # no stream writes one line twice within a nanosecond
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
