import json
from collections.abc import Callable
from pathlib import Path

from gb300serve.lifecycle.backend import LogLine
from gb300serve.simulator.records import follow, poll, read


class Steps:
    """A clock whose sleeps do what the test says, one after the other."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = list(steps)
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds
        if self._steps:
            self._steps.pop(0)()

    @property
    def done(self) -> bool:
        return not self._steps


def record(text: str, at: float = 1.0) -> str:
    return json.dumps({"at": at, "stream": "stdout", "text": text}) + "\n"


def append(path: Path, text: str) -> Callable[[], object]:
    def write() -> None:
        with path.open("a") as file:
            file.write(text)

    return write


def test_half_a_record_is_not_read_yet(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert list(read(path)) == []
    path.write_text(record("one") + record("two")[:-3])
    assert list(read(path)) == [LogLine("one", 1.0, "stdout")]


def test_it_is_followed_from_before_it_exists_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    second = record("two", 2.0)
    clock = Steps(
        lambda: None,
        append(path, record("one")),
        append(path, second[:9]),
        append(path, second[9:]),
        lambda: None,
        append(path, record("three", 3.0)),
    )
    found = [line.text for line in follow(path, lambda: clock.done, clock, 60.0) if line is not None]
    assert found == ["one", "two", "three"]


def test_silence_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(record("one"))
    clock = Steps(*[lambda: None] * 10)
    found = list(follow(path, lambda: clock.done, clock, 0.1))
    assert [line and line.text for line in found] == ["one", None, None, None]


def test_a_container_that_ended_without_a_log(tmp_path: Path) -> None:
    assert list(follow(tmp_path / "log", lambda: True, Steps(), 1.0)) == []


def test_a_fast_clock_is_looked_at_more_often() -> None:
    assert [poll(speed) for speed in (1.0, 100.0, 200.0, 800.0)] == [0.2, 0.1, 0.05, 0.05]
