import pytest

from gb300serve.engines.base import human_int, human_int_or_auto, si_int

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
