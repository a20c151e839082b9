import pytest

from gb300serve.core.values import WrittenFloat
from gb300serve.recipe.model import read_number, read_size


@pytest.mark.parametrize("value", [0, -1, 60, WrittenFloat("0.90")])
def test_a_number_is_kept(value: float) -> None:
    assert read_number(value) is value


@pytest.mark.parametrize("value", ["1", True, None, [1]])
def test_what_is_no_number(value: object) -> None:
    with pytest.raises(ValueError, match="write a number"):
        read_number(value)


def test_a_size_is_not_negative() -> None:
    assert read_size(0) == 0
    with pytest.raises(ValueError, match="write 0 or a positive number"):
        read_size(-0.5)
