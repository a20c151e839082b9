import pytest

from gb300serve.fit.result import NotSweepError, Sweep, read_sweep


@pytest.mark.parametrize(
    ("text", "path", "values"),
    [
        ("engine.options.a=50..53", "engine.options.a", ("50", "51", "52", "53")),
        ("a=0..10:4", "a", ("0", "4", "8")),
        ("a=0.94..0.97:0.01", "a", ("0.94", "0.95", "0.96", "0.97")),
        ('x["a=b"].c=7..7', 'x["a=b"].c', ("7",)),
        ("a=-1..0", "a", ("-1", "0")),
    ],
)
def test_ranges(text: str, path: str, values: tuple[str, ...]) -> None:
    assert read_sweep(text) == Sweep(path, values)


def test_one_assignment_a_value() -> None:
    assert list(read_sweep("a.b=1..2").assignments()) == ["a.b=1", "a.b=2"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a=1", "not PATH=a..b[:step]"),
        ("1..2", "not PATH=a..b[:step]"),
        ("a=1..x", "not PATH=a..b[:step]"),
        ("a=0.90..0.97", "fractions need a step"),
        ("a=2..1", "the step must be above 0, and b not below a"),
        ("a=1..2:0", "the step must be above 0, and b not below a"),
        ("a=1..9999999999", "9999999999 steps, and 1000 at most"),
    ],
)
def test_what_is_no_range(text: str, reason: str) -> None:
    with pytest.raises(NotSweepError) as caught:
        read_sweep(text)
    assert (caught.value.message, caught.value.exit_code) == (f"--sweep {text}: {reason}", 2)
