import struct
import threading
import time
from types import TracebackType

import pytest

from gb300serve.adapters.docker.bars import AttachedBars, BarText


def frame(text: str, kind: int = 2) -> bytes:
    data = text.encode()
    return struct.pack(">BxxxL", kind, len(data)) + data


def after(*pieces: bytes, tty: bool = False) -> tuple[str, ...]:
    bars = BarText(tty=tty)
    for piece in pieces:
        bars.feed(piece)
    return bars.fresh()


def test_the_newest_state_of_a_bar_that_is_being_drawn() -> None:
    assert after(frame("\rTuning:   0%"), frame("\rTuning:  50%")) == ("Tuning:  50%",)


def test_frames_come_in_any_pieces() -> None:
    data = frame("\rTuning:   0%") + frame("\rTuning:  50%")
    assert after(*(data[at : at + 1] for at in range(len(data)))) == ("Tuning:  50%",)


def test_whole_lines_are_the_logs() -> None:
    assert after(frame("a line\n")) == ()
    assert after(frame("\rTuning: 100%\n")) == ()
    assert after(frame("a line\n"), frame("\rTuning:  10%")) == ("Tuning:  10%",)


def test_half_a_line_is_no_bar() -> None:
    assert after(frame("(EngineCore pid=1) INFO")) == ()


def test_each_state_is_told_once() -> None:
    bars = BarText()
    bars.feed(frame("\rTuning:  50%"))
    assert bars.fresh() == ("Tuning:  50%",)
    assert bars.fresh() == ()
    bars.feed(frame("\rTuning:  60%"))
    assert bars.fresh() == ("Tuning:  60%",)


def test_a_state_may_come_in_two_frames() -> None:
    bars = BarText()
    bars.feed(frame("\rTuning:"))
    bars.feed(frame("  50%\r"))
    assert bars.fresh() == ("Tuning:  50%",)


def test_streams_are_apart() -> None:
    assert after(frame("\rone", 1), frame("\rtwo", 2)) == ("one", "two")


def test_a_terminal_has_no_frames() -> None:
    assert after(b"\rTuning: 5%", tty=True) == ("Tuning: 5%",)


def test_a_long_bar_keeps_its_end() -> None:
    bars = BarText()
    for share in range(2000):
        bars.feed(frame(f"\r{'x' * 100} {share}"))
    assert bars.fresh() == (f"{'x' * 100} 1999",)
    assert sum(map(len, bars._open.values())) < 1000  # that it stays small is the point


class Pieces:
    """A response that gives its pieces, and then only silence until it is closed."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)
        self.closed = threading.Event()

    def __enter__(self) -> "Pieces":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closed.set()

    def next(self, timeout: float) -> bytes | None:
        return self.pieces.pop(0) if self.pieces else None if self.closed.wait(timeout) else b""


@pytest.mark.parametrize("pieces", [(frame("\rTuning:  10%"), frame("\rTuning:  20%"))])
def test_a_thread_keeps_up_and_ends_with_its_user(pieces: tuple[bytes, ...]) -> None:
    opened = Pieces(*pieces)
    with AttachedBars(opened) as bars:
        until = time.monotonic() + 10.0
        while opened.pieces and time.monotonic() < until:
            time.sleep(0.001)
        while not (found := bars.fresh()) and time.monotonic() < until:
            time.sleep(0.001)
        assert found[0].startswith("Tuning:")
    assert opened.closed.is_set()
    assert "docker-bars" not in {thread.name for thread in threading.enumerate()}
