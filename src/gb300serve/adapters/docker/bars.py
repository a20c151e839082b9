"""Progress bars of a running container, from its attach stream: the log has them only when complete."""

import threading
from types import TracebackType
from typing import Self

from gb300serve.adapters.docker.logs import OpenChunks, frames

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
