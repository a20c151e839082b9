from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from gb300serve.engines.base import Options, Problem, dotted
from gb300serve.engines.options import option_arguments
from gb300serve.engines.parse import normalised, parse_argv
from gb300serve.engines.registry import engine
from gb300serve.engines.tables import (
    TableChoice,
    elsewhere,
    public,
    table,
    tables_for,
    version_key,
    versions,
)
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
        said = option_arguments(option, value)
        assert said == words_of(option)
        assert normalised(parse_argv(said, shipped), shipped) == normalised({option.key: value}, shipped)


@pytest.mark.parametrize(("engine", "version"), ALL)
def test_every_switch_has_its_off_form_or_is_refused(engine: str, version: str) -> None:
    shipped = table(engine, version)
    for option in shipped.options():
        if option.kind == "bool":
            off = option_arguments(option, False)
            assert off == option.off[:1]
            assert [problem.code for problem in shipped.check(option.key, False)] == ([] if off else ["OPT005"])
            if off:
                assert off[0].startswith("--no-")
                assert parse_argv(off, shipped) == {option.key: False}


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
        ("sglang", "speculative_config", "vllm has it, sglang does not"),
        ("sglang", "enable_prefix_caching", "vllm has it, sglang does not"),
        ("vllm", "disable_radix_cache", "sglang has it, vllm does not"),
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


@pytest.mark.parametrize(
    ("key", "right"),
    [
        ("cpu_offload_param", "cpu_offload_params"),
        ("max_num_batch_tokens", "max_num_batched_tokens"),
        ("tensor-parallel-size", "tensor_parallel_size"),
        ("--tensor-parallel-size", "tensor_parallel_size"),
        ("tp", "tensor_parallel_size"),
        ("sc", "speculative_config"),
        ("no_trust_remote_code", "trust_remote_code"),
        ("Max_Model_Len", "max_model_len"),
    ],
)
def test_another_spelling_is_told_the_right_one(key: str, right: str) -> None:
    expected = Problem((key,), "OPT001", f"engine.options has no '{key}' in vllm {DAY_ZERO}", f"write '{right}'")
    assert table("vllm", DAY_ZERO).check(key, 1) == (expected,)


def test_an_option_that_the_build_refuses() -> None:
    (problem,) = table("vllm", DAY_ZERO).check("max_num_partial_prefills", 2)
    advice = "this build refuses it; long_prefill_token_threshold keeps a long prompt from blocking short ones"
    assert (problem.code, problem.hint) == ("OPT001", advice)


@pytest.mark.parametrize(
    ("key", "version", "hint"),
    [
        ("engram_config", "0.29.0", "vllm 0.30.0 and later have it"),
        ("watchdog_config", "0.30.0", "vllm 0.33.0 has it"),
        ("enable_bf16x3_router_gemm", "0.30.0", "vllm up to 0.29.0 has it"),
        ("enable_mamba_fine_grained_prefix_cache", "0.31.0", f"vllm {DAY_ZERO}, 0.30.0 have it"),
        ("no_such_thing_at_all", "0.30.0", None),
    ],
)
def test_the_versions_that_do_have_it(key: str, version: str, hint: str | None) -> None:
    bare = Problem((key,), "OPT001", "not there")
    assert elsewhere(bare, "vllm", key) == Problem((key,), "OPT001", "not there", hint)


def test_address_as_diagnostics_print_it() -> None:
    assert dotted(("cpu_offload_params", 0)) == "engine.options.cpu_offload_params.0"


def nothing(_options: Options, _choice: TableChoice) -> Iterator[Problem]:
    yield from ()


def about_port(_options: Options, choice: TableChoice) -> Iterator[Problem]:
    yield Problem(("port",), "OPT007", f"port, by {choice.tables[-1].version}")


VLLM, SGLANG_TABLED = (replace(engine(name), meaning=nothing) for name in ("vllm", "sglang"))


def test_one_engine_s_verdict_is_not_the_other_s() -> None:
    """Verdicts are remembered: the engine is part of what is remembered."""
    options: Options = {"max_running_requests": 4}
    assert [problem.code for problem in VLLM.check(options, "0.33.0")] == ["OPT001"]
    assert SGLANG_TABLED.check(options, "0.5.23") == ()


def test_problems_stand_in_the_order_of_the_options_and_each_option_has_one_kind() -> None:
    options: Options = {"no_such": 1, "port": 1, "tp_size": "x"}
    about = replace(engine("sglang"), meaning=about_port)
    found = about.check(options, "0.5.23")
    assert [(problem.path, problem.code) for problem in found] == [
        (("no_such",), "OPT001"),
        (("port",), "OPT007"),
        (("tp_size",), "OPT002"),
    ]
    assert about.check({"port": "x"}, "0.5.23")[0].code == "OPT002"


def test_words_of_options_that_no_table_knows() -> None:
    options: Options = {"no_such": [1, 2], "model_tag": "/model", "port": 1}
    assert SGLANG_TABLED.argv(options, "0.5.23") == ("/model", "--no-such", "1", "2", "--port", "1")
    assert SGLANG_TABLED.open_list({"port": 1, "numa_node": [0]}, "0.5.23") == "numa_node"


ORDER = [
    "0.1.dev20904+g179dd0fa9", "0.9", "0.29.0.dev3", "0.29.0a1", "0.29.0rc1.dev2", "0.29.0rc1", "0.29.0rc2", "0.29.0",
    "0.29.0+cpu", "0.29.0.post1", "0.29.1", "0.30.0", "0.100.0", "1.0",
]  # fmt: skip


def test_order_is_that_of_pep_440() -> None:
    keys = [key for key in map(version_key, ORDER) if key is not None]
    assert len(keys) == len(ORDER)
    assert all(before < after for before, after in pairwise(keys))


@pytest.mark.parametrize("same", [("0.30", "0.30.0"), ("v0.30.0", "0.30.0"), (" 0.30.0", "0.30.0.0")])
def test_spellings_of_one_version(same: tuple[str, str]) -> None:
    assert version_key(same[0]) == version_key(same[1])


@pytest.mark.parametrize("text", ["", "latest", "0.30.x", "nightly-abc", "1..2", "1" * 5000, "0.٣"])
def test_no_version(text: str) -> None:
    assert version_key(text) is None


def test_public_part() -> None:
    assert public("0.32.0+cpu") == "0.32.0"
