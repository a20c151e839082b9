import pytest

from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.shipped import table
from gb300serve.engines.vllm.refusals import Refusal, refusals
from tests.engines.samples import DAY_ZERO, V14

TABLE = table("vllm", DAY_ZERO)
BOUND = "pydantic_core._pydantic_core.ValidationError: 1 validation error for "
NAME = "num_speculative_tokens_per_batch_size"


def test_the_article_s_options_are_refused_nowhere() -> None:
    assert refusals(V14, TABLE) == ()


SAID: list[tuple[dict[str, Value], str, str]] = [
    (
        {"served_model_name": "x"},
        "config",
        "ValueError: `model` should be provided as the first positional argument when using `vllm serve`. "
        "i.e. `vllm serve <model> --<arg> <value>`.",
    ),
    (
        {"enable_auto_tool_choice": True},
        "config",
        "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser",
    ),
    (
        {"gpu_memory_utilization": WrittenFloat("97.0")},
        "config",
        f"{BOUND}CacheConfig\ngpu_memory_utilization\n  Input should be less than or equal to 1 "
        "[type=less_than_equal, input_value=97.0, input_type=float]\n"
        "    For further information visit https://errors.pydantic.dev/2.13/v/less_than_equal",
    ),
    (
        {"max_num_batched_tokens": 4, "max_num_seqs": 8},
        "config",
        "Value error, max_num_batched_tokens (4) must be greater than or equal to max_num_seqs (8).",
    ),
    (
        {"long_prefill_token_threshold": 99999, "max_model_len": "1K"},
        "config",
        "Value error, long_prefill_token_threshold (99999) cannot be greater than the max_model_len (1024).",
    ),
    (
        {"speculative_config": {"methd": "dspark"}},
        "config",
        f"{BOUND}SpeculativeConfig\nmethd\n  Unexpected keyword argument "
        "[type=unexpected_keyword_argument, input_value='dspark', input_type=str]\n"
        "    For further information visit https://errors.pydantic.dev/2.13/v/unexpected_keyword_argument",
    ),
    ({"speculative_config": {NAME: []}}, "scheduler", f"ValueError: {NAME} must not be empty."),
    (
        {"speculative_config": {NAME: [[0, 4, 5]]}},
        "scheduler",
        "ValueError: Batch-size range (0, 4) must be positive.",
    ),
    (
        {"speculative_config": {NAME: [[1, 4, -1]]}},
        "scheduler",
        f"ValueError: {NAME} values must be >= 0.",
    ),
    (
        {"speculative_config": {NAME: [[1, 4, 5], [4, 16, 1]]}},
        "scheduler",
        "ValueError: Batch-size ranges must be non-overlapping and sorted.",
    ),
    (
        {"speculative_config": {NAME: [[2, 4, 5]]}},
        "scheduler",
        "ValueError: The first batch-size range must start at 1 so every runtime batch size has a defined schedule.",
    ),
    ({"port": 70000}, "bind", "OverflowError: bind(): port must be 0-65535."),
]


@pytest.mark.parametrize(("options", "stage", "message"), SAID)
def test_first_refusal(options: dict[str, Value], stage: str, message: str) -> None:
    first, *_ = refusals(options, TABLE)
    assert first == Refusal("config" if stage == "config" else "scheduler" if stage == "scheduler" else "bind", message)


def test_unknown_parsers_list_the_known_ones() -> None:
    options: dict[str, Value] = {"tool_call_parser": "x", "enable_auto_tool_choice": True, "reasoning_parser": "y"}
    tool, reasoning = refusals(options, TABLE)
    assert tool.message.startswith("KeyError: 'invalid tool call parser: x (chose from { apertus,")
    assert reasoning.message.startswith("KeyError: \"Reasoning parser 'y' not found. Available parsers: cohere")
    assert refusals({**options, "tool_parser_plugin": "a", "reasoning_parser_plugin": "b"}, TABLE) == ()


def test_the_earliest_stage_comes_first() -> None:
    options: dict[str, Value] = {
        "port": 70000,
        "cpu_offload_gb": -5,
        "gpu_memory_utilization": 0,
        "speculative_config": {NAME: [[4, 2, 1]]},
    }
    assert [refusal.stage for refusal in refusals(options, TABLE)] == [
        "config",
        "config",
        "scheduler",
        "scheduler",
        "bind",
    ]
