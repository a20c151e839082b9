import pytest

from gb300serve.boot.signals.model import Value, number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,048,576", 1048576),
        ("-6.96", -6.96),
        ("61.", 61.0),
        (".5", 0.5),
        # What a damaged log holds stays text: none of these is a figure of a boot.
        ("9" * 400, "9" * 400),
        ("9" * 400 + ".17", "9" * 400 + ".17"),
        ("²", "²"),
        ("٣", "٣"),
        ("--5", "--5"),
        ("1.2.3", "1.2.3"),
        ("", ""),
    ],
)
def test_number(text: str, value: Value) -> None:
    assert number(text) == value
