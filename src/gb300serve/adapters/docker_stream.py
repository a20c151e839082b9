"""A response that is read while it arrives, with a limit to how long to wait for the next piece."""

import queue
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import requests
import urllib3

# A piece is at most 64 kB: this holds back a container that writes faster than its log is read.
_PIECES = 256
_PIECE = 65536
# The Engine sends every line by itself. Two threads that hand over a thousand of them a second one by one take 1.4 % of
# a core; what comes within this many seconds is handed over together. A log that is there already does not wait.
_TOGETHER = 0.03
_FEW = 16


class ResponseChunks:
    """Implements `docker_follow.Chunks`. A thread reads, because a read that timed out cannot be taken up again."""

    def __init__(self, response: requests.Response) -> None:
        self._response = response
        self._pieces: queue.Queue[bytes | None] = queue.Queue(_PIECES)
        self._ended = False
        self._thread = threading.Thread(target=self._read, name="docker-log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            self._response.raw.shutdown()  # wakes the thread; closing alone does not
        while not self._ended:
            self._take(None)
        self._thread.join()
        self._response.close()

    def next(self, timeout: float) -> bytes | None:
        if self._ended:
            return None
        first = self._take(timeout)
        if first and self._pieces.qsize() < _FEW:
            time.sleep(min(_TOGETHER, timeout))
        return first and first + b"".join(self._waiting())

    def _take(self, timeout: float | None) -> bytes | None:
        try:
            piece = self._pieces.get(timeout=timeout)
        except queue.Empty:
            return b""
        self._ended = piece is None
        return piece

    def _waiting(self) -> Iterator[bytes]:
        """What is there now."""
        while not self._ended and not self._pieces.empty():
            yield self._take(None) or b""

    def _arriving(self) -> Iterator[bytes]:
        """What an attached container writes comes without chunks: reading it whole would wait for its end."""
        if getattr(self._response.raw, "chunked", False):
            yield from self._response.iter_content(chunk_size=None)
            return
        while piece := self._response.raw.read1(_PIECE):
            yield piece

    def _read(self) -> None:
        # A connection that breaks ends like one that is closed: whoever reads asks what became of the container.
        try:
            for piece in self._arriving():
                self._pieces.put(piece)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError):
            return
        finally:
            self._pieces.put(None)
