import pytest

from gb300serve.core.errors import BackendError
from gb300serve.lifecycle.backend import PATIENCE, Absence
from tests.support.fake_clock import FakeClock


def ask(absence: Absence, error: Exception | None) -> None:
    with absence:
        if error:
            raise error


def test_it_is_waited_for_so_long_and_each_time_anew() -> None:
    clock, away = FakeClock(), BackendError("no Docker Engine answers")
    absence = Absence(clock)
    for _ in range(2):
        ask(absence, away)
        clock.sleep(PATIENCE)
        ask(absence, away)
        ask(absence, None)
    ask(absence, away)
    clock.sleep(PATIENCE + 1)
    with pytest.raises(BackendError, match="no Docker Engine answers"):
        ask(absence, away)


def test_nothing_else_is_let_fail() -> None:
    with pytest.raises(KeyError):
        ask(Absence(FakeClock()), KeyError("x"))
