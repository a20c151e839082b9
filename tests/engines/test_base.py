import pytest

from gb300serve.core.values import WrittenFloat
from gb300serve.engines.base import (
    dotted,
    flag,
    human_int,
    human_int_or_auto,
    is_list,
    is_whole,
    length,
    number,
    si_int,
    si_length,
    text,
)

SAID = {
    "1M": 1048576,
    "1m": 1000000,
    "1k": 1000,
    "1K": 1024,
    "1.5k": 1500,
    "1_048_576": 1048576,
    "0": 0,
    " 8K ": 8192,
    "2T": 2**41,
}


@pytest.mark.parametrize(("text", "number"), SAID.items())
def test_read(text: str, number: int) -> None:
    assert human_int(text) == number
    assert human_int_or_auto(text) == number


@pytest.mark.parametrize("text", ["1.5K", "1MM", "1,048,576", "1e6", "1048576.0", "", "K", "auto"])
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid literal for int"):
        human_int(text)


@pytest.mark.parametrize("text", ["auto", "AUTO", "-1", " auto"])
def test_as_long_as_memory_allows(text: str) -> None:
    assert human_int_or_auto(text) == -1


@pytest.mark.parametrize(
    ("text", "number"),
    [("1M", 1000000), ("1Mi", 1048576), ("25.6k", 25600), ("1.0005k", 1000), (" 8Ki ", 8192), ("7", 7), ("-1", -1)],
)
def test_suffixes_as_sglang_reads_them(text: str, number: int) -> None:
    assert si_int(text) == number


@pytest.mark.parametrize("text", ["1m", "8K", "1.5Ki", "1MM", "auto", ""])
def test_refused_by_sglang(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid literal for int"):
        si_int(text)


VALUES = (True, 3, WrittenFloat("0.5"), "1M", "x", [1], {"a": 1}, None)


def test_each_reads_its_own_type_only() -> None:
    assert [is_whole(value) for value in VALUES] == [False, True, False, False, False, False, False, False]
    assert [is_list(value) for value in VALUES] == [False, False, False, False, False, True, False, False]
    assert [text(value) for value in VALUES] == [None, None, None, "1M", "x", None, None, None]
    assert [flag(value) for value in VALUES] == [True, None, None, None, None, None, None, None]
    assert [number(value) for value in VALUES] == [None, 3.0, 0.5, None, None, None, None, None]
    assert [length(value) for value in VALUES] == [None, 3, None, 1048576, None, None, None, None]
    assert [si_length(value) for value in VALUES] == [None, 3, None, 1000000, None, None, None, None]


def test_a_number_that_no_option_can_have_counts_as_not_given() -> None:
    assert [number(value) for value in (10**400, -(10**400), 2**62)] == [None, None, float(2**62)]
    assert [length(value) for value in (10**400, "9" * 400, "99999999999G", -1)] == [None, None, None, -1]


def test_address() -> None:
    assert dotted(()) == "engine.options"
    assert dotted(("a", 0, "b")) == "engine.options.a.0.b"
