import pytest

from gb300serve.recipe.model import check_template


@pytest.mark.parametrize("text", ["no figure", "Loaded {value} configs", 5])
def test_at_most_one_figure(text: object) -> None:
    assert check_template(text) == text


def test_two_figures() -> None:
    with pytest.raises(ValueError, match="write a receipt for each figure"):
        check_template("{value} of {value}")
