import pytest

from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.options import first_text, model_first, plain_words, texts, whole


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, ("--a-b",)),
        (False, ()),
        (None, ()),
        (WrittenFloat("0.90"), ("--a-b", "0.90")),
        (["x", 1], ("--a-b", "x", "1")),
        ({"k": [1]}, ("--a-b", '{"k":[1]}')),
        ("-x", ("--a-b=-x",)),
    ],
)
def test_the_common_form(value: Value, words: tuple[str, ...]) -> None:
    assert plain_words("a_b", value) == words


def test_the_model_comes_first_and_the_rest_keeps_its_order() -> None:
    assert list(model_first({"b": 1, "model_tag": "m", "a": 2})) == [("model_tag", "m"), ("b", 1), ("a", 2)]
    assert list(model_first({"b": 1, "a": 2})) == [("b", 1), ("a", 2)]


def test_narrowing() -> None:
    assert (texts("a"), texts(["a", 1, "b"]), texts(None)) == (("a",), ("a", "b"), ())
    assert (first_text({"b": "x", "a": 1}, "a", "b"), first_text({}, "a")) == ("x", None)
    assert (whole(3, 1), whole(True, 1), whole("3", 1), whole(None, 1)) == (3, 1, 1, 1)
