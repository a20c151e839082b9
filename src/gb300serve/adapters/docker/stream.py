"""Read a response while it arrives, with a timeout for each chunk."""

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Self

import requests
import urllib3

_PIECE = 65536
# The reader pauses while this many bytes are unread.
_UNREAD = 4 << 20

# Seconds. The Engine sends each line separately; a wakeup for each of 1,000 lines per second costs 4 % of a core.
_GATHER = 0.02


class ResponseChunks:
    """Implements `logs.Chunks`. A thread reads, because a read cannot be resumed after a timeout.

    The queue is a SimpleQueue: Ctrl-C at the wrong moment leaves the lock of a `queue.Queue` taken for ever, and both
    threads hang (https://bugs.python.org/issue29988).
    """

    def __init__(self, response: requests.Response) -> None:
        self._response = response
        self._pieces: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._received = self._taken = 0  # bytes; each is written by one thread
        self._ended = self._left = False
        self._thread = threading.Thread(target=self._read, name="docker-log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._left = True
        with suppress(RuntimeError, ValueError, OSError):  # the response has just ended
            if self._thread.is_alive():  # otherwise its connection may serve another request already
                self._response.raw.shutdown()  # wakes the thread; close() does not
        self._thread.join()
        self._pieces.put(None)  # for another thread that is in `next`
        self._response.close()

    def next(self, timeout: float) -> bytes | None:
        return None if self._ended else self._take(timeout)

    def _take(self, timeout: float | None) -> bytes | None:
        """The next chunk and all that arrived with it, up to `_PIECE` bytes."""
        try:
            piece = self._pieces.get(timeout=timeout)
        except queue.Empty:
            return b""
        if piece is not None and self._pieces.empty():
            time.sleep(_GATHER)
        together, size = [], 0
        while piece is not None:
            together.append(piece)
            size += len(piece)
            self._taken += len(piece)
            if size >= _PIECE or self._pieces.empty():
                return b"".join(together)
            piece = self._pieces.get()
        self._ended = not together
        self._pieces.put(None)  # for the next read of the end
        return b"".join(together) or None

    def _read(self) -> None:
        # A broken connection ends like a closed one: the caller checks the state of the container.
        try:
            for piece in self._body():
                self._received += len(piece)
                self._pieces.put(piece)
                while self._received - self._taken > _UNREAD and not self._left:
                    time.sleep(_GATHER)
                if self._left:
                    return
        except (urllib3.exceptions.HTTPError, OSError):
            return
        finally:
            self._pieces.put(None)

    def _body(self) -> Iterator[bytes]:
        """Chunks as they arrive; the stream of an attached container is not chunked."""
        raw = self._response.raw
        if getattr(raw, "chunked", False):
            yield from raw.read_chunked(decode_content=False)
            return
        while piece := raw.read1(_PIECE):
            yield piece
