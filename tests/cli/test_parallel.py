import os

import pytest

from gb300serve.app.lint import CHUNK, FEWEST, spread
from gb300serve.core.errors import MachineError


class OddError(MachineError):
    def __init__(self, number: int) -> None:
        super().__init__(f"{number} is odd")


def halved(number: int) -> int:
    if number % 2:
        raise OddError(number)
    return number // 2


def process(_: int) -> int:
    return os.getpid()


def test_few_items_stay_in_this_process() -> None:
    assert set(spread(process, range(FEWEST - 1))) == {os.getpid()}


def test_many_items_come_back_in_their_order() -> None:
    numbers = range(0, 2 * (FEWEST + CHUNK + 1), 2)
    assert list(spread(halved, numbers)) == [number // 2 for number in numbers]


def test_an_error_of_ours_is_raised_here_with_its_words() -> None:
    numbers = [*range(0, 2 * FEWEST, 2), 7]
    with pytest.raises(OddError, match="7 is odd"):
        list(spread(halved, numbers))
