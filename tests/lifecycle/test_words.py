import pytest

from gb300serve.lifecycle.words import values

WORDS = ("/model", "--names", "a", "b", "--flag", "--port=1", "--port", "2")


@pytest.mark.parametrize(
    ("flag", "expected"),
    [("--names", ("a", "b")), ("--flag", ()), ("--port", ("1", "2")), ("--absent", ())],
)
def test_values_of_a_flag(flag: str, expected: tuple[str, ...]) -> None:
    assert values(WORDS, flag) == expected
    assert values((), flag) == ()
