import threading

import pytest

from gb300serve.adapters.system import at_once
from gb300serve.core.errors import BackendError

GONE = BackendError("gone")


def refuse() -> int:
    raise GONE


def break_down() -> int:
    raise ZeroDivisionError


def test_who_is_silent_holds_up_nobody() -> None:
    ending = threading.Event()

    def silent() -> int:
        ending.wait(60)
        return 3

    try:
        assert at_once({"a": silent, "b": lambda: 1, "c": refuse}, 1.0) == {"a": None, "b": 1, "c": GONE}
    finally:
        ending.set()


def test_they_are_asked_at_the_same_time() -> None:
    meeting = threading.Barrier(3)
    assert at_once({name: lambda: meeting.wait(20) >= 0 for name in "abc"}, 30.0) == dict.fromkeys("abc", True)


def test_a_bug_is_not_an_answer() -> None:
    with pytest.raises(ZeroDivisionError):
        at_once({"a": break_down}, 30.0)
    assert at_once({}, 1.0) == {}
