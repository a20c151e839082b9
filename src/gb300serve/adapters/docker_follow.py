"""Following a container's log through dropped connections and restarts of the Docker Engine."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from gb300serve.adapters.docker_errors import DockerUnreachableError, NoSuchContainerError
from gb300serve.adapters.docker_inspect import NANO
from gb300serve.adapters.docker_logs import Delivered, LogDecoder, LogEntry
from gb300serve.core.clock import Clock
from gb300serve.lifecycle.absence import PATIENCE
from gb300serve.lifecycle.ports import LogLine

# A container writes before the Engine notes that it runs: over a loaded machine's hundreds of milliseconds, and less
# than it takes to stop an engine and start it again.
EARLY = NANO
# Docker waits 0.1 s before its restart policy starts a container again, and lets the same stream go on: whatever comes
# after a pause of that length may be the next start's.
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
        """From when its lines are. What an earlier start wrote last may be stamped a little after that one's end."""
        return max(0, self.at - EARLY, (self.ended + self.at) // 2)


class Chunks(Protocol):
    """A response as it arrives."""

    def next(self, timeout: float) -> bytes | None:
        """The next piece, empty when none came within `timeout` seconds; None at the end."""


class LogSource(Protocol):
    """Where a container's log comes from. Raises BackendError."""

    def last_start(self, container: str) -> Start: ...

    def started_at(self, container: str) -> int:
        """When what runs was started: nanoseconds since 1970, 0 between two starts too. Cheaper than `last_start`."""

    def open_log(
        self, container: str, since: int, *, live: bool, entries: int | None = None
    ) -> AbstractContextManager[Chunks]:
        """The last `entries` entries since then, or all; `live` ones go on until the container ends."""


class Follower:
    """One container's log since its last start, each line once."""

    def __init__(self, source: LogSource, clock: Clock, container: str) -> None:
        self._source = source
        self._clock = clock
        self._container = container
        self._start = source.last_start(container)
        self._delivered = Delivered(self._start.log_from)
        self._lost_at: float | None = None

    def follow(self, every: float) -> Iterator[LogLine | None]:
        """Until the container has ended or is removed; None after every `every` seconds of silence."""
        ended = not self._start.at
        while not ended:
            try:
                yield from self._lines(every, live=True)
                now = self._source.last_start(self._container)
                ended = not (now.running and now.at == self._start.at)  # else the connection was lost
                if ended:  # The stream may end before the last lines are in it.
                    yield from self._lines(every, live=False, before=now.log_from if now.at != self._start.at else None)
            except NoSuchContainerError:
                return
            except DockerUnreachableError:
                if self._away() > PATIENCE:
                    raise
                ended = False
                self._clock.sleep(min(every, 1.0))
                yield None

    def log(self, entries: int | None) -> Iterator[LogLine]:
        """As it stands: the last `entries` entries, or all."""
        if self._start.at:
            opened = self._source.open_log(self._container, self._start.log_from, live=False, entries=entries)
            for together in self._pieces(opened, PATIENCE):
                for entry in together or ():
                    yield from entry.lines(self._start.at)

    def _away(self) -> float:
        """Seconds since the Engine was first found gone."""
        self._lost_at = self._clock.now() if self._lost_at is None else self._lost_at
        return self._clock.now() - self._lost_at

    def _lines(self, every: float, *, live: bool, before: int | None = None) -> Iterator[LogLine | None]:
        """What was not delivered yet; `before` is the start that came after this one."""
        opened = self._source.open_log(self._container, self._delivered.resume(), live=live)
        self._lost_at = None
        newest = self._start.at
        for entries in self._pieces(opened, every, whole=not live):
            paused = entries is None
            for entry in entries or ():
                paused = paused or entry.stamp - newest >= PAUSE
                newest = max(newest, entry.stamp)
            # All of a piece was written before this question, and a question a line takes minutes for a week's log.
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
        """What came together; None after silence. A last line without a line feed only when the `whole` log is read."""
        decoder = LogDecoder(tty=self._start.tty)
        with opened as chunks:
            while (chunk := chunks.next(every)) is not None:
                yield decoder.feed(chunk) if chunk else None
        if whole:
            yield tuple(decoder.flush())
