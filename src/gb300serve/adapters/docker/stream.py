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
# The reader blocks after this many unread chunks.
_PIECES = 256

# Seconds. The Engine sends each line separately; a wakeup for each of 1,000 lines per second costs 4 % of a core.
_GATHER = 0.02


class ResponseChunks:
    """Implements `logs.Chunks`. A thread reads, because a read cannot be resumed after a timeout."""

    def __init__(self, response: requests.Response) -> None:
        self._response = response
        self._pieces: queue.Queue[bytes | None] = queue.Queue(_PIECES)
        self._ended = False
        self._thread = threading.Thread(target=self._read, name="docker-log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        with suppress(RuntimeError, ValueError, OSError):  # the response has just ended
            self._response.raw.shutdown()  # wakes the thread; close() does not
        while self._thread.is_alive():  # it may wait for room in the queue
            with suppress(queue.Empty):
                self._pieces.get(timeout=_GATHER)
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
                self._pieces.put(piece)
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
