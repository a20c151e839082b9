from gb300serve.engines.base import Problem
from gb300serve.engines.check import check_least, check_port, meant_fraction, outside


def test_numbers_below_the_least() -> None:
    found = list(check_least({"a": 0, "b": 1, "c": "x"}, {"a": 1, "b": 1, "c": 1, "d": 1}))
    assert found == [Problem(("a",), "OPT007", "a is 0, not at least 1", "write a number at least 1")]


def test_ports() -> None:
    assert [len(list(check_port(value))) for value in (-1, 0, 65535, 65536, "x", None)] == [1, 0, 0, 1, 0, 0]


def test_percentages_stand_for_fractions() -> None:
    assert [meant_fraction(value) for value in (0.5, 1, 1.5, 85, 100, 101)] == [
        None,
        None,
        None,
        "a fraction is meant: write 0.85",
        "a fraction is meant: write 1",
        None,
    ]
    assert outside("a", 85, "below 1", meant_fraction(85)).hint == "a fraction is meant: write 0.85"
