from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gb300serve.core.diagnostics import Severity
from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.base import Problem
from gb300serve.engines.options import EngineOption
from gb300serve.engines.parse import normalised, parse_argv
from gb300serve.engines.registry import engine
from gb300serve.engines.tables import table
from gb300serve.engines.vllm.engine import LEAST, check_limits, check_parsers
from tests.engines.samples import DAY_ZERO, V14, value_of

VLLM = engine("vllm")

# The engine's words of the article's command, in its order; JSON compact.
ARTICLE = (
    "--model", "/model", "--served-model-name", "dsv41-flash-uva", "--trust-remote-code",
    "--tensor-parallel-size", "1",
    "--offload-backend", "uva", "--cpu-offload-gb", "60",
    "--cpu-offload-params", "routed_experts.w13_weight", "routed_experts.w2_weight",
    "--engram-config", '{"cpu_offload":true}',
    "--speculative-config",
    '{"method":"dspark","num_speculative_tokens":5,"num_speculative_tokens_per_batch_size":[[1,4,5],[5,16,1]]}',
    "--max-model-len", "1048576", "--max-num-seqs", "16", "--max-num-batched-tokens", "8192",
    "--gpu-memory-utilization", "0.97",
    "--long-prefill-token-threshold", "6144",
    "--tool-call-parser", "deepseek_v41", "--reasoning-parser", "deepseek_v41", "--enable-auto-tool-choice",
    "--port", "30006",
)  # fmt: skip


def test_the_article_s_options_are_right_and_give_its_words() -> None:
    assert VLLM.check(V14, DAY_ZERO) == ()
    assert VLLM.argv(V14, DAY_ZERO) == ARTICLE


def test_what_the_rest_asks() -> None:
    assert VLLM.served_names(V14) == ("dsv41-flash-uva",)
    assert VLLM.served_names({"served_model_name": ["a", "b"]}) == ("a", "b")
    assert VLLM.served_names({"model_tag": "/model"}) == ("/model",)
    assert VLLM.served_names({}) == ()
    assert (VLLM.port(V14), VLLM.port({})) == (30006, 8000)
    assert (VLLM.model_path(V14), VLLM.model_path({"model_tag": "/m"}), VLLM.model_path({})) == ("/model", "/m", None)


def test_the_positional_model_comes_first() -> None:
    options: dict[str, Value] = {"served_model_name": ["a", "b"], "model_tag": "/model", "port": 1}
    assert VLLM.argv(options, DAY_ZERO) == ("/model", "--served-model-name", "a", "b", "--port", "1")


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"port": 1, "cpu_offload_params": ["a"]}, "cpu_offload_params"),
        ({"cpu_offload_params": ["a"], "port": 1}, None),
        ({"served_model_name": "a", "model_tag": "/model"}, "served_model_name"),
        ({"hf_token": True}, "hf_token"),
        ({"hf_token": "x"}, None),
        ({"api_key": "x", "port": None}, "api_key"),
        ({"middleware": ["a"]}, None),
        ({"model_tag": "/model"}, None),
        ({"no_such_option": ["a"]}, None),
        ({}, None),
    ],
)
def test_a_list_at_the_end_would_swallow_bare_words(options: dict[str, Value], key: str | None) -> None:
    assert VLLM.open_list(options, DAY_ZERO) == key


def test_problems_stand_in_the_order_of_the_options() -> None:
    options: dict[str, Value] = {
        "model": "/model",
        "port": 70000,
        "gpu_memory_utilization": 97,
        "cpu_offload_param": "x",
        "model_tag": "/other",
    }
    assert VLLM.check(options, DAY_ZERO) == (
        Problem(("model",), "OPT013", "model and model_tag both name the model", "leave one of them out"),
        Problem(("port",), "OPT007", "port is 70000, not between 0 and 65535", "write a number between 0 and 65535"),
        Problem(
            ("gpu_memory_utilization",),
            "OPT007",
            "gpu_memory_utilization is 97, not above 0 and at most 1",
            "it is a fraction: write 0.97",
        ),
        Problem(
            ("cpu_offload_param",),
            "OPT001",
            f"engine.options has no 'cpu_offload_param' in vllm {DAY_ZERO}",
            "write 'cpu_offload_params'",
        ),
    )


def test_a_wrong_type_is_said_once() -> None:
    (problem,) = VLLM.check({"gpu_memory_utilization": "97%"}, DAY_ZERO)
    assert (problem.code, problem.hint) == ("OPT002", "write 0.97")


def note(message: str) -> Problem:
    return Problem((), "OPT008", message)


def test_a_version_without_table_asks_its_neighbours_and_says_so_once() -> None:
    between = note("vllm 0.30.1 has no option table: its options are checked against 0.30.0 and 0.31.0")
    assert VLLM.check({**V14, "max_num_active_seqs": 4}, "0.30.1") == (between,)  # new in 0.31.0
    assert VLLM.check({"enable_mamba_fine_grained_prefix_cache": True}, "0.30.1") == (between,)  # gone in 0.31.0
    wrong, said = VLLM.check({"watchdog_config": {}}, "0.30.1")
    assert (wrong.code, wrong.message, said) == (
        "OPT001",
        "engine.options has no 'watchdog_config' in vllm 0.31.0",
        between,
    )


def test_without_a_version_every_table_is_asked() -> None:
    unstated = note("engine.version is not set: the options are checked against all vllm tables")
    assert VLLM.check({**V14, "watchdog_config": {}, "enable_bf16x3_router_gemm": True}, None) == (unstated,)
    assert VLLM.argv(V14, None) == ARTICLE


def test_words_come_from_the_table_that_takes_the_value() -> None:
    assert VLLM.argv({"enable_mamba_fine_grained_prefix_cache": False}, "0.30.1") == (
        "--no-enable-mamba-fine-grained-prefix-cache",
    )


def test_options_without_a_table_row_are_said_by_the_common_form() -> None:
    options: dict[str, Value] = {"new_flag": "x", "other": [1, "b"], "on": True, "off": False, "json": {"a": 1}}
    words = ("--new-flag", "x", "--other", "1", "b", "--on", "--json", '{"a":1}')
    assert VLLM.argv(options, DAY_ZERO) == words


_TABLE = table("vllm", DAY_ZERO)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_WORD = st.text().filter(lambda text: not text.startswith("-"))


def _values(option: EngineOption) -> st.SearchStrategy[Value]:
    """Values that the check takes, hostile texts and nested JSON among them."""
    if option.kind == "bool":
        return st.booleans() if option.off else st.just(True)
    if option.choices or option.fields is not None or option.shape == "list":
        return st.just(value_of(option))
    by_kind: dict[str, st.SearchStrategy[Any]] = {
        "text": _WORD if option.arity == "many" or option.positional else st.text(),
        "int": st.integers(),
        "float": st.integers() | st.sampled_from(["0.5", "-1.25", "0.90"]).map(WrittenFloat),
        "human-int": st.integers() | st.sampled_from(["1M", "1.5k"]),
        "human-int-or-auto": st.integers(min_value=0) | st.sampled_from(["auto", "8K"]),
        "json-dataclass": st.dictionaries(st.text(), _JSON, max_size=3),
        "json-loads": st.dictionaries(st.text(), _JSON, max_size=3),
        "json-or-text": st.dictionaries(st.text(), _JSON, max_size=3),
    }
    one = by_kind[option.kind]
    if option.nullable:  # the engine reads these two as unset
        one = one.filter(lambda value: value not in ("", "None"))
    return st.lists(one, min_size=1, max_size=3) if option.arity in ("many", "append") else one


@st.composite
def generated(draw: st.DrawFn) -> dict[str, Value]:
    keys = draw(st.lists(st.sampled_from(sorted(_TABLE.rows)), unique=True, max_size=8))
    found = [option for key in keys if (option := _TABLE.find(key)) is not None]
    return {option.key: draw(_values(option)) for option in found if option.key != "model"}


@given(generated())
def test_the_engine_s_parser_reads_back_what_is_said(options: dict[str, Value]) -> None:
    assert [problem for problem in VLLM.check(options, DAY_ZERO) if problem.code not in ("OPT007", "OPT012")] == []
    words = VLLM.argv(options, DAY_ZERO)
    assert normalised(parse_argv(words, _TABLE), _TABLE) == normalised(options, _TABLE)


OUTSIDE: list[tuple[str, Value, str, str]] = [
    ("gpu_memory_utilization", 97, "above 0 and at most 1", "it is a fraction: write 0.97"),
    ("gpu_memory_utilization", WrittenFloat("92.5"), "above 0 and at most 1", "it is a fraction: write 0.925"),
    ("gpu_memory_utilization", 0, "above 0 and at most 1", "write a number above 0 and at most 1"),
    ("gpu_memory_utilization", 970, "above 0 and at most 1", "write a number above 0 and at most 1"),
    ("port", 70000, "between 0 and 65535", "write a number between 0 and 65535"),
    ("port", -1, "between 0 and 65535", "write a number between 0 and 65535"),
    ("max_model_len", 0, "at least 1, or auto", "write a number at least 1, or auto"),
    ("max_model_len", "0", "at least 1, or auto", "write a number at least 1, or auto"),
    ("cpu_offload_gb", -5, "at least 0", "write a number at least 0"),
]


@pytest.mark.parametrize(("key", "value", "wanted", "hint"), OUTSIDE)
def test_outside(key: str, value: Value, wanted: str, hint: str) -> None:
    (problem,) = check_limits({key: value})
    said = f'"{value}"' if isinstance(value, str) else str(value)
    assert (problem.path, problem.code, problem.message, problem.hint) == (
        (key,),
        "OPT007",
        f"{key} is {said}, not {wanted}",
        hint,
    )


def test_every_least_value_is_inside_and_one_less_is_not() -> None:
    assert list(check_limits(dict(LEAST))) == []
    below = {key: least - 1 for key, least in LEAST.items()}
    assert [problem.path[0] for problem in check_limits(below)] == list(LEAST)


def test_ends_are_inside() -> None:
    for options in ({"gpu_memory_utilization": 1, "port": 0}, {"port": 65535, "max_model_len": -1}, {}):
        assert list(check_limits(options)) == []


def test_other_types_are_left_to_the_table() -> None:
    assert list(check_limits({"port": "${secret:PORT}", "gpu_memory_utilization": True, "max_model_len": [1]})) == []


KNOWN = (table("vllm", "0.29.0"), table("vllm", "0.30.0"))


def told(options: dict[str, Value]) -> list[tuple[tuple[str | int, ...], Severity | None, str, str | None]]:
    return [(found.path, found.severity, found.message, found.hint) for found in check_parsers(options, KNOWN)]


def test_a_tool_parser_that_automatic_choice_needs_is_an_error() -> None:
    assert told({"tool_call_parser": "deepseek_v42", "enable_auto_tool_choice": True}) == [
        (
            ("tool_call_parser",),
            None,
            "tool_call_parser is 'deepseek_v42', which vllm 0.30.0 does not register",
            "write deepseek_v4",
        )
    ]


def test_a_tool_parser_that_nobody_asks_for_is_a_warning() -> None:
    ((_, severity, _, hint),) = told({"tool_call_parser": "zzz"})
    assert severity == "warning"
    assert hint is not None
    assert hint.startswith("write one of apertus, ")


def test_a_reasoning_parser_is_always_looked_up() -> None:
    ((path, severity, message, hint),) = told({"reasoning_parser": "deepseek_41"})
    assert (path, severity, hint) == (("reasoning_parser",), None, "write deepseek_v41")
    assert message == "reasoning_parser is 'deepseek_41', which vllm 0.30.0 does not register"


def test_registered_names_and_plugins() -> None:
    assert told({"tool_call_parser": "deepseek_v41", "reasoning_parser": "deepseek_v41"}) == []
    assert told({"reasoning_parser": "none", "tool_call_parser": ""}) == []
    assert told({"tool_call_parser": "own", "tool_parser_plugin": "/w/own.py"}) == []
    assert told({"reasoning_parser": "own", "reasoning_parser_plugin": "/w/own.py"}) == []
