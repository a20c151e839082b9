import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import pytest

from gb300serve.adapters.docker.errors import DockerUnreachableError, NoSuchContainerError
from gb300serve.adapters.docker.inspect import NANO
from gb300serve.adapters.docker.logs import Chunks, Follower, Start
from gb300serve.core.errors import BackendError
from gb300serve.lifecycle.backend import PATIENCE, LogLine

START = 1_000 * NANO


@dataclass
class FakeClock:
    time: float = 0.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


@dataclass
class FakeChunks:
    pieces: list[bytes]

    def next(self, timeout: float) -> bytes | None:
        return self.pieces.pop(0) if self.pieces else None


@dataclass
class FakeEngine:
    """Answers what the test lists, in order; an error is raised."""

    starts: list[Start | BackendError]
    logs: list[list[bytes] | BackendError]
    asked: list[tuple[int, bool]] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    """What `started_at` says, in order; then the start that is followed."""
    questions: int = 0

    def started_at(self, container: str) -> int:
        self.questions += 1
        return self.started.pop(0) if self.started else START

    def last_start(self, container: str) -> Start:
        answer = self.starts.pop(0)
        if isinstance(answer, BackendError):
            raise answer
        return answer

    def open_log(
        self, container: str, since: int, *, live: bool, entries: int | None = None
    ) -> AbstractContextManager[Chunks]:
        self.asked.append((since, live))
        answer = self.logs.pop(0)
        if isinstance(answer, BackendError):
            raise answer
        return self._opened(answer)

    @contextmanager
    def _opened(self, pieces: list[bytes]) -> Iterator[Chunks]:
        yield FakeChunks(pieces)


RUNNING, ENDED = Start(START, 0, running=True), Start(START, 0, running=False)
GONE = DockerUnreachableError("unix:///d.sock", "Connection refused")


def at(seconds: float, text: str) -> bytes:
    """A frame of standard output, `seconds` after the start."""
    nanos = START + int(seconds * NANO)
    minutes, left = divmod(nanos, 60 * NANO)
    stamp = f"1970-01-01T{minutes // 60:02d}:{minutes % 60:02d}:{left // NANO:02d}.{left % NANO:09d}Z"
    body = f"{stamp} {text}\n".encode()
    return struct.pack(">BxxxL", 1, len(body)) + body


def follow(engine: FakeEngine, clock: FakeClock | None = None) -> list[str | None]:
    lines = Follower(engine, clock or FakeClock(), "lane").follow(0.5)
    return [line.text if isinstance(line, LogLine) else None for line in lines]


def test_an_ended_container_is_read_twice_and_told_once() -> None:
    engine = FakeEngine(
        [RUNNING, ENDED], [[at(1, "one"), b"", at(2, "two")], [at(1, "one"), at(2, "two"), at(2, "end")]]
    )
    assert follow(engine) == ["one", None, "two", "end"]
    assert engine.asked == [(START - NANO, True), (START + NANO, False)]


def test_equal_lines_are_told_as_often_as_they_were_written() -> None:
    twice = [at(2, "x"), at(2.000001, "x")]
    engine = FakeEngine([RUNNING, ENDED], [twice, [*twice, at(2.000002, "x")]])
    assert follow(engine) == ["x"] * 3


def test_a_lost_connection_is_taken_up_again() -> None:
    logs: list[list[bytes] | BackendError] = [
        [at(1, "one"), at(5, "two")],
        GONE,
        [at(4.5, "late"), at(5, "two"), at(6, "three")],
        [at(6, "three")],
        [at(6, "three")],
    ]
    engine = FakeEngine([RUNNING, GONE, RUNNING, ENDED], logs)
    assert follow(engine) == ["one", "two", None, None, "late", "three"]
    assert [since for since, _ in engine.asked] == [
        START - NANO,
        START + 4 * NANO,
        START + 4 * NANO,
        *[START + 5 * NANO] * 2,
    ]


def test_an_engine_that_stays_away() -> None:
    clock = FakeClock()
    engine = FakeEngine([RUNNING], [[at(1, "one")], *[GONE] * 1000])
    engine.starts.append(GONE)
    with pytest.raises(DockerUnreachableError):
        follow(engine, clock)
    assert PATIENCE < clock.time <= PATIENCE + 1


def test_a_container_that_is_removed_has_ended() -> None:
    """Before its end is seen, and between that and a last look at its log."""
    removed = NoSuchContainerError("lane")
    assert follow(FakeEngine([RUNNING, removed], [[at(1, "one")]])) == ["one"]
    assert follow(FakeEngine([RUNNING, ENDED], [[at(1, "one")], removed])) == ["one"]


def test_the_next_start_is_not_followed() -> None:
    again = Start(START + 10 * NANO, START + 9 * NANO, running=True)
    engine = FakeEngine([RUNNING, again], [[at(1, "one")], [at(1, "one"), at(8, "last"), at(11, "next start")]])
    assert follow(engine) == ["one", "last"]


def test_never_started() -> None:
    engine = FakeEngine([Start(0, 0, running=False)] * 2, [])
    assert follow(engine) == []
    assert list(Follower(engine, FakeClock(), "lane").log(None)) == []


@pytest.mark.parametrize(
    ("ended", "begins"),
    [(0, START - NANO), (START - 5 * NANO, START - NANO), (START - NANO // 10, START - NANO // 20)],
)
def test_where_a_log_begins(ended: int, begins: int) -> None:
    assert Start(START, ended, running=True).log_from == begins


def test_a_log_as_it_stands() -> None:
    engine = FakeEngine([ENDED], [[at(0.25, "one\r two"), at(1, "")[:-1]]])
    lines = list(Follower(engine, FakeClock(), "lane").log(None))
    assert lines == [LogLine("one", 0.25), LogLine(" two", 0.25)]


AGAIN = Start(START + 5 * NANO, START + 4 * NANO, running=True)


def test_a_stream_that_goes_on_into_the_next_start_ends_before_it() -> None:
    """A restart policy started the container again: Docker's stream does not end for that."""
    live = [at(1, "one"), at(1.05, "two"), at(5.2, "the next start's")]
    rest = [at(1, "one"), at(1.05, "two"), at(1.1, "last words"), at(5.2, "the next start's")]
    engine = FakeEngine([RUNNING, AGAIN], [live, rest], started=[START, AGAIN.at])
    assert follow(engine) == ["one", "two", "last words"]


def test_a_silent_stream_is_looked_after_too() -> None:
    engine = FakeEngine([RUNNING, AGAIN], [[at(1, "one"), b"", b""], [at(1, "one")]], started=[START, START, AGAIN.at])
    assert follow(engine) == ["one", None]


def test_a_start_that_has_ended_is_left_before_the_next_one_is_noted() -> None:
    """Its restart policy waits, or the next start writes already: what it wrote last is asked for once more."""
    waits = Start(START, 0, running=False)
    live = [at(1, "one"), at(4.6, "the next start's")]
    engine = FakeEngine([RUNNING, waits], [live, [at(1, "one"), at(1.1, "last words")]], started=[START, 0])
    assert follow(engine) == ["one", "last words"]


def test_the_next_start_begins_where_its_own_log_does() -> None:
    rest = [at(1, "one"), at(4.4, "last words"), at(4.9, "the next start's, before it was noted")]
    engine = FakeEngine([RUNNING, AGAIN], [[at(1, "one")], rest], started=[START])
    assert follow(engine) == ["one", "last words"]


def test_what_came_together_is_one_question() -> None:
    """A line every minute, for a day."""
    day = b"".join(at(60 * minute, str(minute)) for minute in range(24 * 60 - 20))
    engine = FakeEngine([RUNNING, ENDED], [[day], []])
    assert follow(engine) == [str(minute) for minute in range(24 * 60 - 20)]
    assert engine.questions == 1
