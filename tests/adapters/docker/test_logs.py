import itertools
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gb300serve.adapters.docker.errors import DockerUnreachableError, NoSuchContainerError
from gb300serve.adapters.docker.inspect import NANO
from gb300serve.adapters.docker.logs import REMEMBERED, Chunks, Delivered, Follower, LogDecoder, LogEntry, Start
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


STAMP = "1970-01-01T00:00:01.000000002Z"


def frame(stream: int, text: str, stamp: str = STAMP) -> bytes:
    body = f"{stamp} {text}".encode()
    return struct.pack(">BxxxL", stream, len(body)) + body


LOG = (
    frame(1, "one\n")
    + frame(2, "problem\n")
    + frame(1, "begun ")
    + frame(2, "in between\n")
    + frame(1, "and ended\n")
    + frame(1, "\n")
    + frame(1, "ü")
)
ENTRIES = [
    LogEntry(NANO + 2, "stdout", "one"),
    LogEntry(NANO + 2, "stderr", "problem"),
    LogEntry(NANO + 2, "stderr", "in between"),
    LogEntry(NANO + 2, "stdout", "begun and ended"),
    LogEntry(NANO + 2, "stdout", ""),
]


@given(st.lists(st.integers(0, len(LOG)), max_size=6))
def test_the_pieces_do_not_matter(cuts: list[int]) -> None:
    decoder = LogDecoder()
    bounds = [0, *sorted(cuts), len(LOG)]
    entries = [entry for a, b in itertools.pairwise(bounds) for entry in decoder.feed(LOG[a:b])]
    assert entries == ENTRIES
    assert list(decoder.flush()) == [LogEntry(NANO + 2, "stdout", "ü")]
    assert list(decoder.flush()) == []


def test_with_a_terminal() -> None:
    decoder = LogDecoder(tty=True)
    assert list(decoder.feed(f"{STAMP} one\r\n{STAMP} tw".encode())) == [LogEntry(NANO + 2, "stdout", "one\r")]
    assert list(decoder.feed(b"o\n")) == [LogEntry(NANO + 2, "stdout", "two")]


LATER = STAMP.replace("02Z", "03Z")


def test_a_terminals_long_lines_come_in_pieces() -> None:
    """Of 16384 bytes, each with the stamp of the first; nothing but the stamps tells where they begin."""
    long = "x" * 16384 + "y" * 16384 + "z"
    cut = "".join(f"{STAMP} {long[at : at + 16384]}" for at in range(0, len(long), 16384))
    decoder = LogDecoder(tty=True)
    assert decoder.feed(f"{cut}\r\n{LATER} next\r\n".encode()) == [
        LogEntry(NANO + 2, "stdout", f"{long}\r"),
        LogEntry(NANO + 3, "stdout", "next\r"),
    ]


def test_a_terminals_last_line_without_a_line_feed() -> None:
    decoder = LogDecoder(tty=True)
    assert decoder.feed(f"{STAMP} one\n{LATER} \rLoading 50%".encode()) == [LogEntry(NANO + 2, "stdout", "one")]
    assert list(decoder.flush()) == [LogEntry(NANO + 3, "stdout", "\rLoading 50%")]
    assert list(decoder.flush()) == []


def test_a_long_line_whose_line_feed_was_not_kept() -> None:
    """The log driver `local` (Docker 28.2) keeps none behind a line of more than 16 KiB."""
    decoder = LogDecoder()
    assert decoder.feed(frame(1, "x" * 16384) + frame(1, "y") + frame(2, "z\n")) == [LogEntry(NANO + 2, "stderr", "z")]
    assert decoder.feed(frame(1, "next\n", LATER)) == [
        LogEntry(NANO + 2, "stdout", "x" * 16384 + "y"),
        LogEntry(NANO + 3, "stdout", "next"),
    ]


def test_each_state_of_a_progress_bar_is_a_line() -> None:
    def lines(text: str) -> list[str]:
        return [line.text for line in LogEntry(0, "stdout", text).lines(0)]

    assert lines("\rLoading 10%\rLoading 100%\r") == ["Loading 10%", "Loading 100%"]
    assert lines("") == lines("\r") == [""]


def test_what_comes_before_the_start_was_noted_counts_from_it() -> None:
    assert list(LogEntry(5 * NANO, "stderr", "a").lines(6 * NANO)) == [LogLine("a", 0.0, "stderr")]
    assert list(LogEntry(8 * NANO, "stdout", "b").lines(6 * NANO)) == [LogLine("b", 2.0)]


def test_bytes_that_are_no_text() -> None:
    body = STAMP.encode() + b" \xff\xfe\n"
    assert [entry.text for entry in LogDecoder().feed(struct.pack(">BxxxL", 1, len(body)) + body)] == ["��"]


def test_only_the_last_second_is_asked_for_again() -> None:
    delivered = Delivered(0)
    entries = [LogEntry(second * NANO, "stdout", "x") for second in range(1, 5)]
    assert [delivered.is_new(entry) for entry in entries] == [True] * 4
    assert delivered.resume() == 3 * NANO
    later = LogEntry(3 * NANO + 1, "stdout", "x")
    assert [delivered.is_new(entry) for entry in (entries[2], later, entries[3])] == [False, True, False]


def test_what_the_engine_tells_again_by_itself_is_known() -> None:
    """It goes back when a log is rotated; what it tells next to that may be new."""
    delivered = Delivered(0)
    out = [LogEntry(number * NANO, "stdout", f"line {number}") for number in range(1, 9)]
    errors = [LogEntry(number * NANO + 5, "stderr", "the same") for number in range(1, 9)]
    told = [line for pair in zip(out, errors, strict=True) for line in pair]
    assert [delivered.is_new(entry) for entry in told] == [True] * 16
    again = [
        *told[4:],
        *told[-2:],
        LogEntry(8 * NANO, "stdout", "another of that moment"),
        LogEntry(9 * NANO, "stdout", "line 9"),
    ]
    assert [delivered.is_new(entry) for entry in again] == [False] * 14 + [True] * 2


def test_a_clock_that_was_set_back_hides_no_line() -> None:
    delivered = Delivered(0)
    assert [delivered.is_new(LogEntry(stamp * NANO, "stdout", "x")) for stamp in (100, 50, 51)] == [True] * 3


def test_what_is_remembered_has_an_end() -> None:
    delivered = Delivered(0)
    for number in range(REMEMBERED + 10):
        delivered.is_new(LogEntry(number * NANO, "stdout", "x"))
    assert delivered.is_new(LogEntry(9 * NANO, "stdout", "x"))
    assert not delivered.is_new(LogEntry(10 * NANO, "stdout", "x"))
