import pytest

from gb300serve.core.text import GIB, gib, parse_digits, printable, shorten_words, suggestion, summarize_names


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü\ttext\n", "plain ü\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x1bPq\x1b\\x", "x"),
        ("a\x1b(Bb", "ab"),
        ("a\rb\x08c\x00d\x7fe\x9bf", "abcdef"),
        ("\x1b", ""),
        ("a\u202eb\u2066c\u2069 עברית", "abc עברית"),
        ("\x1b]never closed", ""),
    ],
)
def test_nothing_steers_the_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_the_nearest_word() -> None:
    words = ["cpu_offload_params", "cpu_offload_gb", "port"]
    assert suggestion("cpu_offload_param", words) == "cpu_offload_params"
    assert suggestion("prot", words) == "port"
    assert suggestion("unrelated", words) is None
    assert suggestion("x", []) is None
    assert suggestion("enable_reasoning", ["enable_prefix_caching"]) is None
    assert suggestion("spec_model", ["grpc_mode"]) is None
    assert suggestion("max_seqs", ["max_num_seqs"]) == "max_num_seqs"


def test_a_word_that_nobody_could_copy_is_cut() -> None:
    assert shorten_words("a " + "9" * 1000) == "a " + "9" * 1000
    assert shorten_words("a " + "9" * 5000 + " b") == f"a {'9' * 80}… (5,000 characters) …{'9' * 20} b"


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("08", 8), ("9" * 18, 10**18 - 1)])
def test_a_number_of_plain_digits(text: str, number: int) -> None:
    assert parse_digits(text) == number


@pytest.mark.parametrize("text", ["", "-1", "1.0", "8\u2460", "\u0663", "9" * 19, "9" * 5000])
def test_what_is_no_number_of_plain_digits(text: str) -> None:
    assert parse_digits(text) is None


def test_sizes() -> None:
    assert [gib(size) for size in (0, 41 * 1024**2, GIB, 256703 * 1024**2)] == [
        "0 MiB",
        "41 MiB",
        "1.0 GiB",
        "250.7 GiB",
    ]


def test_some_names() -> None:
    assert (summarize_names(("a",)), summarize_names(("a", "b", "c"))) == ("a", "a and 2 more")
