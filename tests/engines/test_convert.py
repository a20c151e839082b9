import argparse

import pytest

from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.options import EngineOption
from gb300serve.engines.parse import converter
from gb300serve.engines.tables import table
from tests.engines.samples import DAY_ZERO

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
def test_read(key: str, word: str, value: Value) -> None:
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
