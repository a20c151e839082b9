import pytest

from gb300serve.importers.engine_options import Flags, is_flag

FLAGS = Flags("vllm", "0.33.0")


@pytest.mark.parametrize(
    ("flag", "key", "off", "below", "short"),
    [
        ("--max-model-len", "max_model_len", False, "", False),
        ("--max_model_len", "max_model_len", False, "", False),
        ("--max-model", "max_model_len", False, "", True),
        ("-tp", "tensor_parallel_size", False, "", False),
        ("--no-enable-prefix-caching", "enable_prefix_caching", True, "", False),
        ("--speculative-config.num_speculative_tokens", "speculative_config", False, "num_speculative_tokens", False),
    ],
)
def test_what_a_flag_says(flag: str, key: str, off: bool, below: str, short: bool) -> None:
    found = FLAGS.find(flag)
    assert found is not None
    assert (found.option.key, found.off, found.below, found.short) == (key, off, below, short)


@pytest.mark.parametrize("flag", ["--nope", "--max", "--port.x", "-x", "--m"])
def test_what_no_option_says(flag: str) -> None:
    assert FLAGS.find(flag) is None


def test_a_misspelt_one_is_looked_for_a_few_times_only() -> None:
    flags = Flags("vllm", "0.33.0")
    assert flags.meant("--max-modl-len") == "--max-model-len"
    for _ in range(19):
        flags.meant("--max-modl-len")
    assert flags.meant("--max-modl-len") is None


def test_an_unknown_version_takes_the_flags_of_every_table() -> None:
    flags = Flags("vllm", None)
    assert {len(flags.tables) > 1, "--port" in flags} == {True}


@pytest.mark.parametrize(("word", "flag"), [("--a", True), ("-a", True), ("-1", False), ("-1.5", False), ("-", False)])
def test_negative_numbers_are_values(word: str, flag: bool) -> None:
    assert is_flag(word) is flag
