"""A response that is read while it arrives, with a limit to how long to wait for the next piece."""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import requests
import urllib3

_END = b"\r\n"
# A size has 16 digits at most, and no Engine sends extensions or trailers of this length.
_LONGEST = 1024


class ChunkError(ValueError):
    """Not chunks, or cut off: the connection is of no more use."""


def dechunked(arriving: Iterable[bytes]) -> Iterator[bytes]:
    """For each piece that brings some of the body, what it brings; ends with the body.

    Raises ChunkError where the bytes are no chunks, or end before the last one.
    """
    rest, left = b"", 0
    for piece in arriving:
        parts, rest, left = _cut(rest + piece, left)
        if body := b"".join(parts):
            yield body
        if left < 0:
            return
        if len(rest) > _LONGEST:
            raise ChunkError("the size of a chunk does not end")
    raise ChunkError("the response ended inside its body")


def _cut(data: bytes, left: int) -> tuple[list[bytes], bytes, int]:
    """Parts of the body, what is left over, and how much of the current chunk is to come: less than 0 after the last.

    The end of line behind a chunk counts as two bytes of it, which are no part of the body.
    """
    parts, at = [], 0
    while True:
        if left:
            parts.append(data[at : at + max(0, left - len(_END))])
            at += left
        if at > len(data):
            return parts, b"", at - len(data)
        end = data.find(_END, at)
        if end < 0:
            return parts, data[at:], 0
        size = _size(data[at:end])
        if size == 0:
            ended = data.find(_END + _END, end) >= 0
            return parts, b"" if ended else data[at:], -1 if ended else 0
        at, left = end + len(_END), size + len(_END)


def _size(line: bytes) -> int:
    """In hexadecimal; extensions behind a semicolon say nothing to us."""
    try:
        size = int(line.partition(b";")[0], 16)
    except ValueError as error:
        raise ChunkError(f"not the size of a chunk: {line[:20]!r}") from error
    if size < 0:
        raise ChunkError(f"not the size of a chunk: {line[:20]!r}")
    return size


_PIECE = 65536
# This many pieces hold back a container that writes faster than its log is read.
_PIECES = 256
# The Engine sends every line by itself, and to wake up for each of a thousand a second takes 2 % of a core. So a
# connection is left alone for a while once all of it is read: at first, and for an answer that ends, for hardly any
# time, then for longer; as long as no more lines come together than a socket holds (Linux: 277 small writes; beyond
# them the Engine waits for us, and behind 1 MB the container waits for the Engine) nor more bytes than one piece has
# (of long lines a socket holds 200 kB: with pauses that looked at lines alone, 16 MB took 11 s, not 0.2).
_PAUSE, _LONGEST_PAUSE = 0.002, 0.2
_ROOM = 200


def paused(before: float, waited: float, lines: int, size: int) -> float:
    """Seconds to leave a connection alone, after as many lines and bytes came together in the pause `before`.

    `waited` is how long nothing came behind that pause: what speaks so seldom is passed on at once.
    """
    share = max(lines / _ROOM, size / _PIECE)
    return _PAUSE if waited > _LONGEST_PAUSE else min(_LONGEST_PAUSE, before / max(0.5, share))


class ResponseChunks:
    """Implements `docker_follow.Chunks`. A thread reads, because a read that timed out cannot be taken up again."""

    def __init__(self, response: requests.Response) -> None:
        self._response = response
        self._pieces: queue.Queue[bytes | None] = queue.Queue(_PIECES)
        self._ended = False
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._read, name="docker-log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()
        with suppress(RuntimeError, OSError):  # it has just ended: the connection is given back, or reset
            if not self._ended:
                self._response.raw.shutdown()  # wakes the thread; closing alone does not
        while not self._ended:
            self._take(None)
        self._thread.join()
        self._response.close()

    def next(self, timeout: float) -> bytes | None:
        return None if self._ended else self._take(timeout)

    def _take(self, timeout: float | None) -> bytes | None:
        try:
            piece = self._pieces.get(timeout=timeout)
        except queue.Empty:
            return b""
        if piece is None:
            self._ended = True
            self._pieces.put(None)  # for whoever waits beside
        return piece

    def _read(self) -> None:
        # A connection that breaks ends like one that is closed: whoever reads asks what became of the container.
        try:
            for piece in self._body():
                self._pieces.put(piece)
        except (ChunkError, urllib3.exceptions.HTTPError, OSError):
            return
        finally:
            self._pieces.put(None)

    def _body(self) -> Iterator[bytes]:
        """What an attached container writes comes without chunks."""
        raw: Any = self._response.raw
        if not getattr(raw, "chunked", False):
            yield from self._arriving(raw.read1, (b"\n", b"\r"))
            return
        below = raw._fp  # http.client's response: urllib3 has no way of its own to what is below the chunks
        yield from dechunked(self._arriving(below.fp.read1, (b"\n\r\n",)))
        below.close()  # read to its end, so that the connection can take the next question
        raw.release_conn()

    def _arriving(self, read: Callable[[int], bytes], ends: tuple[bytes, ...]) -> Iterator[bytes]:
        """`ends`: of a line or of the state of a bar, as they are sent."""
        pause, lines, size, since = _PAUSE, 0, 0, time.monotonic()
        while piece := read(_PIECE):
            waited = time.monotonic() - since
            yield piece
            lines, size = lines + sum(map(piece.count, ends)), size + len(piece)
            if len(piece) < _PIECE:
                pause = paused(pause, waited, lines, size)
                lines = size = 0
                self._leaving.wait(pause)
            since = time.monotonic()
