import argparse
from dataclasses import field

import pytest
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.options import EngineOption
from gb300serve.engines.parse import (
    ArgumentRefusedError,
    converter,
    normalised,
    parse_argv,
    unexpected,
    validation_text,
)
from gb300serve.engines.tables import table
from tests.engines.samples import DAY_ZERO

TABLE = table("vllm", DAY_ZERO)

READ: list[tuple[tuple[str, ...], dict[str, Value]]] = [
    (("/model",), {"model": "/model"}),
    (("--model", "/model", "--port", "1"), {"model": "/model", "port": 1}),
    (("--port", "1", "--model=/model"), {"model": "/model", "port": 1}),
    (("--max_model_len", "1M"), {"max_model_len": "1M"}),
    (("--max-model-len=1048576",), {"max_model_len": 1048576}),
    (("--max-model", "auto"), {"max_model_len": "auto"}),
    (("--max-model-len", "-1"), {"max_model_len": -1}),
    (("-tp", "2", "-sc", "{}"), {"tensor_parallel_size": 2, "speculative_config": {}}),
    (("--no-trust-remote-code",), {"trust_remote_code": False}),
    (("--no-async-scheduling", "-ep"), {"async_scheduling": False, "enable_expert_parallel": True}),
    (("--port", "1", "--port", "2"), {"port": 2}),
    (("--cpu-offload-params", "a", "b", "/model"), {"cpu_offload_params": ["a", "b", "/model"]}),
    (("--middleware", "a", "--middleware", "b"), {"middleware": ["a", "b"]}),
    (("--engram-config", "None", "--max-log-len", ""), {"engram_config": None, "max_log_len": None}),
    (("--hf-overrides", "a.b"), {"hf_overrides": "a.b"}),
    (("--additional-config", '{"a":1.50}'), {"additional_config": {"a": 1.5}}),
    (("--hf-token", "--moe-backend", "FlashInfer-TRTLLM"), {"hf_token": True, "moe_backend": "flashinfer_trtllm"}),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "options"), READ)
def test_read(argv: tuple[str, ...], options: dict[str, Value]) -> None:
    assert parse_argv(argv, TABLE) == options


def test_numbers_keep_their_spelling_and_options_their_order() -> None:
    found = parse_argv(("--gpu-memory-utilization", "0.90", "--cpu-offload-gb", "60", "--port", "1"), TABLE)
    assert [f"{key}={value}" for key, value in found.items()] == [
        "gpu_memory_utilization=0.90",
        "cpu_offload_gb=60",
        "port=1",
    ]


HEAD = "vllm serve: error: "
SWITCH = "--trust-remote-code/--no-trust-remote-code"
REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("/m", "--offload-backnd", "uva"), "vllm: error: unrecognized arguments: --offload-backnd uva"),
    (("/m", "--trust-remote-code", "true"), "vllm: error: unrecognized arguments: true"),
    (("/m", "--cpu-offload-params=a", "b"), "vllm: error: unrecognized arguments: b"),
    (("/m", "--max-num-partial-prefills", "2"), "vllm: error: unrecognized arguments: --max-num-partial-prefills 2"),
    (("--port", "abc"), HEAD + "argument --port: invalid int value: 'abc'"),
    (("--port",), HEAD + "argument --port: expected one argument"),
    (("--api-key", "--port", "1"), HEAD + "argument --api-key: expected at least one argument"),
    (("--cpu-offload-gb", "60GB"), HEAD + "argument --cpu-offload-gb: invalid float value: '60GB'"),
    (("--max-num-seqs", "1k"), HEAD + "argument --max-num-seqs: invalid int value: '1k'"),
    (("--max-model-len", "1MM"), HEAD + "argument --max-model-len: invalid human_readable_int_or_auto value: '1MM'"),
    (
        ("--max-model-len", "1.5K"),
        HEAD + "argument --max-model-len: Decimals are not allowed with binary suffixes like K. "
        "Did you mean to use 1.5k instead?",
    ),
    (("--trust-remote-code=true",), f"{HEAD}argument {SWITCH}: ignored explicit argument 'true'"),
    (("--allowed-origins", "{x}"), HEAD + "argument --allowed-origins: invalid loads value: '{x}'"),
    (("--max-log-len", "x"), HEAD + "argument --max-log-len: Value x cannot be converted to <class 'int'>."),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "line"), REFUSED)
def test_refused(argv: tuple[str, ...], line: str) -> None:
    with pytest.raises(ArgumentRefusedError) as caught:
        parse_argv(argv, TABLE)
    assert caught.value.message == line
    assert caught.value.message.endswith(caught.value.reason)
    assert caught.value.engine_exit_code == 2


def test_none_is_a_choice_since_0_31() -> None:
    words = ("--safetensors-load-strategy", "None")
    assert parse_argv(words, table("vllm", "0.31.0")) == {"safetensors_load_strategy": None}
    with pytest.raises(ArgumentRefusedError, match="argument --safetensors-load-strategy: invalid choice: None"):
        parse_argv(words, TABLE)


def test_an_ambiguous_beginning_names_what_it_could_be() -> None:
    with pytest.raises(
        ArgumentRefusedError, match=r"ambiguous option: --max-model could match|ambiguous option: --max "
    ):
        parse_argv(("--max", "1K"), TABLE)


def test_a_wrong_choice_lists_the_right_ones() -> None:
    # Python 3.12 and later print the choices without quotes.
    with pytest.raises(
        ArgumentRefusedError, match=r"invalid choice: 'UVA' \(choose from '?auto'?, '?prefetch'?, '?uva'?\)"
    ):
        parse_argv(("--offload-backend", "UVA"), TABLE)


AT = "at 0x7f3a5c1d8e00>"
URL = "    For further information visit https://errors.pydantic.dev/2.13/v/"


def option(key: str) -> EngineOption:
    found = table("vllm", DAY_ZERO).find(key)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("key", "word", "value"),
    [
        ("cpu_offload_gb", "60", 60),
        ("cpu_offload_gb", "0.90", WrittenFloat("0.90")),
        ("cpu_offload_gb", "1e2", 100.0),
        ("max_num_batched_tokens", "8k", "8k"),
        ("max_num_batched_tokens", "8192", 8192),
        ("speculative_config", '{"a": 0.50}', {"a": WrittenFloat("0.50")}),
        ("speculative_config", "", None),
        ("engram_config", '{"cpu_offload": true}', {"cpu_offload": True}),
        ("hf_overrides", " {} ", {}),
        ("hf_overrides", "[1]", "[1]"),
    ],
)
def test_read_convert(key: str, word: str, value: Value) -> None:
    found = converter(option(key))(word)
    assert (found, str(found), type(found)) == (value, str(value), type(value))


@pytest.mark.parametrize(
    ("key", "word", "text"),
    [
        ("speculative_config", "{a:1}", f"Value {{a:1}} cannot be converted to <function loads {AT}."),
        ("max_num_queued_tokens", "x", f"Value x cannot be converted to <function human_readable_int {AT}."),
        ("video_pruning_rate", "x", "Value x cannot be converted to <class 'float'>."),
        (
            "engram_config",
            "{cpu_offload: true}",
            "1 validation error for EngramConfig\n  Invalid JSON: key must be a string at line 1 column 2 "
            "[type=json_invalid, input_value='{cpu_offload: true}', input_type=str]\n" + URL + "json_invalid",
        ),
        (
            "engram_config",
            "[1]",
            "1 validation error for EngramConfig\n  Input should be an object "
            "[type=dataclass_type, input_value=[1], input_type=list]\n" + URL + "dataclass_type",
        ),
        ("hf_overrides", "{bad}", f"Value {{bad}} cannot be converted to <function loads {AT}."),
        (
            "engram_config",
            '{"cpu_offload": "maybe"}',
            "1 validation error for EngramConfig\ncpu_offload\n"
            "  Input should be a valid boolean, unable to interpret input "
            "[type=bool_parsing, input_value='maybe', input_type=str]\n" + URL + "bool_parsing",
        ),
        (
            "attention_config",
            '{"flash_attn_version": 9}',
            "1 validation error for AttentionConfig\nflash_attn_version\n  Input should be 2, 3 or 4 "
            "[type=literal_error, input_value=9, input_type=int]\n" + URL + "literal_error",
        ),
        (
            "engram_config",
            '{"a": 1, "cpu_offload": true, "b": "x"}',
            "2 validation errors for EngramConfig\n"
            "a\n  Unexpected keyword argument [type=unexpected_keyword_argument, input_value=1, input_type=int]\n"
            + URL + "unexpected_keyword_argument\n"
            "b\n  Unexpected keyword argument [type=unexpected_keyword_argument, input_value='x', input_type=str]\n"
            + URL + "unexpected_keyword_argument",
        ),
    ],
)  # fmt: skip
def test_refused_in_the_engine_s_words(key: str, word: str, text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        converter(option(key))(word)
    assert str(caught.value) == text


def test_argparse_prints_the_name_of_the_type() -> None:
    names = {
        key: converter(option(key)).__name__ for key in ("port", "max_model_len", "cpu_offload_gb", "hf_overrides")
    }
    assert names == {
        "port": "int",
        "max_model_len": "human_readable_int_or_auto",
        "cpu_offload_gb": "float",
        "hf_overrides": "union_dict_and_str",
    }


def test_one_spelling() -> None:
    written = {
        "model_tag": "/model",
        "served_model_name": "x",
        "middleware": ["a"],
        "max_model_len": "auto",
        "max_num_batched_tokens": "8K",
        "moe_backend": "FlashInfer-TRTLLM",
        "kv_cache_memory_bytes": "${secret:SIZE}",
        "port": None,
        "unknown": 1,
    }
    assert normalised(written, table("vllm", DAY_ZERO)) == {
        "model": "/model",
        "served_model_name": ["x"],
        "middleware": ["a"],
        "max_model_len": -1,
        "max_num_batched_tokens": 8192,
        "moe_backend": "flashinfer_trtllm",
        "kv_cache_memory_bytes": "${secret:SIZE}",
        "unknown": 1,
    }


@dataclass(config=ConfigDict(extra="forbid"))
class EngramConfig:
    cpu_offload: bool = field(default=True)


@pytest.mark.parametrize("value", [1, "x", None, [1], {"a": 1}])
def test_the_text_is_that_of_pydantic_itself(value: Value) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(EngramConfig).validate_python({"cpu_ofload": value})
    ours = validation_text("EngramConfig", [unexpected("cpu_ofload", value)])
    assert ours.replace("/2.13/", "/V/") == str(caught.value).replace(f"/{pydantic_version()}/", "/V/")


def pydantic_version() -> str:
    """Major and minor, as pydantic's links carry them."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(int).validate_python("x")
    return caught.value.errors()[0]["url"].split("/")[3]
