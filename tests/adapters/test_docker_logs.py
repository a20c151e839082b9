import itertools
import struct

from hypothesis import given
from hypothesis import strategies as st

from gb300serve.adapters.docker.inspect import NANO
from gb300serve.adapters.docker.logs import REMEMBERED, Delivered, LogDecoder, LogEntry
from gb300serve.lifecycle.backend import LogLine

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
