import pytest

from gb300serve.engines.parse import normalised, parse_argv
from gb300serve.engines.tables import elsewhere, table, tables_for, versions
from tests.engines.samples import DAY_ZERO, value_of, words_of

SHIPPED = (DAY_ZERO, "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0")


SGLANG = ("0.5.20", "0.5.21", "0.5.22", "0.5.23")
ALL = [*(("vllm", version) for version in SHIPPED), *(("sglang", version) for version in SGLANG)]


def spoken_for(version: str | None, engine: str = "vllm") -> tuple[bool, tuple[str, ...]]:
    choice = tables_for(engine, version)
    return choice.exact, tuple(table.version for table in choice.tables)


def test_versions_are_sorted_oldest_first() -> None:
    assert versions("vllm") == SHIPPED
    assert versions("sglang") == SGLANG


@pytest.mark.parametrize(("engine", "version"), ALL)
def test_every_option_can_be_said_printed_and_read_back(engine: str, version: str) -> None:
    shipped = table(engine, version)
    for option in shipped.options():
        value = value_of(option)
        assert shipped.check(option.key, value) == (), option
        words = shipped.words(option.key, value)
        assert words == words_of(option)
        assert normalised(parse_argv(words, shipped), shipped) == normalised({option.key: value}, shipped)


@pytest.mark.parametrize(("engine", "version"), ALL)
def test_every_switch_has_its_off_form_or_is_refused(engine: str, version: str) -> None:
    shipped = table(engine, version)
    for option in shipped.options():
        if option.kind == "bool":
            words = shipped.words(option.key, False)
            assert words == option.off[:1]
            assert [problem.code for problem in shipped.check(option.key, False)] == ([] if words else ["OPT005"])
            if words:
                assert words[0].startswith("--no-")
                assert parse_argv(words, shipped) == {option.key: False}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (DAY_ZERO, (True, (DAY_ZERO,))),
        ("0.30.0", (True, ("0.30.0",))),
        ("0.32.0+cpu", (True, ("0.32.0",))),
        ("0.30.1", (False, ("0.30.0", "0.31.0"))),
        ("0.31.0rc1", (False, ("0.30.0", "0.31.0"))),
        ("0.40.0", (False, ("0.33.0",))),
        ("0.1.dev1", (False, (DAY_ZERO,))),
        (None, (False, SHIPPED)),
        ("nightly", (False, SHIPPED)),
        ("../0.30.0", (False, SHIPPED)),
    ],
)
def test_which_tables_speak_for_a_version(version: str | None, expected: tuple[bool, tuple[str, ...]]) -> None:
    assert spoken_for(version) == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.5.20", (True, ("0.5.20",))),
        ("0.5.21.dev0+g582389ce", (False, ("0.5.20", "0.5.21"))),
        ("0.5.24", (False, ("0.5.23",))),
        ("0.5.9", (False, ("0.5.20",))),
        (None, (False, SGLANG)),
    ],
)
def test_a_nightly_of_sglang_is_spoken_for_by_its_neighbours(
    version: str | None, expected: tuple[bool, tuple[str, ...]]
) -> None:
    assert spoken_for(version, "sglang") == expected


def test_day_zero_table_has_the_options_of_the_nearest_release() -> None:
    day_zero, nearest = table("vllm", DAY_ZERO), table("vllm", "0.30.0")
    assert day_zero.rows.keys() == nearest.rows.keys()
    assert sorted(day_zero.refused or {}) == ["max_long_partial_prefills", "max_num_partial_prefills"]


def test_parsers_of_the_model_are_registered_since_day_zero() -> None:
    having = [name for name in SHIPPED if "deepseek_v41" in table("vllm", name).tool_call_parsers]
    assert having == [DAY_ZERO, "0.30.0", "0.31.0", "0.32.0", "0.33.0"]


@pytest.mark.parametrize(
    ("engine", "key", "hint"),
    [
        ("sglang", "speculative_config", "vllm has it, sglang has nothing of that name"),
        ("sglang", "enable_prefix_caching", "vllm has it, sglang has nothing of that name"),
        ("vllm", "disable_radix_cache", "sglang has it, vllm has nothing of that name"),
        ("sglang", "max_num_seqs", "write 'max_running_requests'"),
        ("sglang", "tensor_parallel_size", "write 'tp_size'"),
        ("sglang", "served_model_nam", "write 'served_model_name'"),
        ("sglang", "nothing_like_it_at_all", None),
    ],
)
def test_an_option_of_the_other_engine(engine: str, key: str, hint: str | None) -> None:
    choice = table(engine, versions(engine)[-1])
    (problem,) = choice.check(key, 1)
    assert elsewhere(problem, engine, key).hint == hint
