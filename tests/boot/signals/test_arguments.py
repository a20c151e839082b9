import pytest

from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from tests.boot.cases import SIZING, Case, argparse, check, config, engine, name, pydantic
from tests.boot.logs import Log

CASES = [
    Case(Reason.UNKNOWN_ARGUMENT, argparse("unrecognized arguments: --max-seqs 8"), 3, {"arguments": "--max-seqs 8"}),
    Case(
        Reason.UNKNOWN_ARGUMENT,
        argparse("unrecognized arguments: serve http://x:1/y"),
        3,
        {"arguments": "serve http://x:1/y"},
    ),
    Case(
        Reason.UNKNOWN_ARGUMENT,
        argparse("ambiguous option: --max could match --max-model-len, --max-num-seqs"),
        3,
        {"argument": "--max"},
    ),
    Case(
        Reason.BAD_ARGUMENT_VALUE,
        argparse("argument --cpu-offload-gb: invalid float value: '60GB'"),
        3,
        {"argument": "--cpu-offload-gb", "error": "invalid float value: '60GB'"},
    ),
    Case(
        Reason.BAD_ARGUMENT_VALUE,
        [
            *pydantic("gpu_memory_utilization", ""),
            "  Input should be less than or equal to 1 [type=less_than_equal, input_value=97.0, input_type=float]",
        ],
        8,
        {"error": "Input should be less than or equal to 1", "kind": "less_than_equal", "value": 97.0},
    ),
    Case(
        Reason.BAD_ARGUMENT_VALUE,
        pydantic("max_num_batched_tokens (4) must be greater than or equal to max_num_seqs (8). [type=value_error, x]"),
        6,
        {
            "error": "max_num_batched_tokens (4) must be greater than or equal to max_num_seqs (8)",
            "max_num_batched_tokens": 4,
            "max_num_seqs": 8,
        },
    ),
    Case(
        Reason.BAD_ARGUMENT_VALUE,
        engine("ValueError: Batch-size ranges must be non-overlapping and sorted.", Log().raw(*SIZING)),
        17,
        {"error": "Batch-size ranges must be non-overlapping and sorted."},
        Phase.SIZING_KV_CACHE,
    ),
    Case(
        Reason.INVALID_JSON,
        argparse(
            "argument --speculative-config/-sc: Value {'method': 'dspark'} cannot be converted to"
            " <function loads at 0x7f00>."
        ),
        3,
        {"argument": "--speculative-config/-sc", "value": "{'method': 'dspark'}"},
    ),
    Case(
        Reason.INVALID_JSON,
        [
            *argparse("argument --engram-config: 1 validation error for EngramConfig"),
            "  Invalid JSON: trailing comma at line 1 column 22 [type=json_invalid,"
            " input_value='{\"cpu_offload\":true,}', input_type=str]",
        ],
        4,
        {"error": "trailing comma at line 1 column 22", "value": '{"cpu_offload":true,}'},
    ),
    Case(
        Reason.JSON_QUOTING_LOST,
        argparse(
            "argument --speculative-config/-sc: Value {method:dspark,num_speculative_tokens:3} cannot be converted to"
            " <function loads at 0x7f00>."
        ),
        3,
        {"argument": "--speculative-config/-sc", "value": "{method:dspark,num_speculative_tokens:3}"},
    ),
    Case(
        Reason.JSON_QUOTING_LOST,
        argparse('argument --speculative-config: Value {"method": cannot be converted to <function loads at 0x1>.'),
        3,
        {"argument": "--speculative-config", "value": '{"method":'},
    ),
    Case(
        Reason.JSON_QUOTING_LOST,
        argparse("argument --engram-config: Value {cpu_offload:true} cannot be converted to <function parse at 0x1>."),
        3,
        {"argument": "--engram-config", "value": "{cpu_offload:true}"},
    ),
    Case(
        Reason.INVALID_JSON,
        argparse('argument -sc: Value {"method":"dspark",} cannot be converted to <function loads at 0x1>.'),
        3,
        {"argument": "-sc", "value": '{"method":"dspark",}'},
    ),
    Case(
        Reason.BAD_ARGUMENT_VALUE,
        argparse("argument --max-model-len: Value 1MM cannot be converted to <class 'int'>."),
        3,
        {"argument": "--max-model-len", "error": "Value 1MM cannot be converted to <class 'int'>."},
    ),
    Case(
        Reason.JSON_QUOTING_LOST,
        argparse("unrecognized arguments: num_speculative_tokens:3"),
        3,
        {"arguments": "num_speculative_tokens:3"},
    ),
    Case(
        Reason.UNKNOWN_PARSER,
        config("KeyError: 'invalid tool call parser: glm99 (chose from { glm45,glm47 })'"),
        5,
        {"parser": "glm99", "known": "glm45,glm47"},
    ),
    Case(
        Reason.UNKNOWN_PARSER,
        config("KeyError: \"Reasoning parser 'think2' not found. Available parsers: deepseek_r1, glm45\""),
        5,
        {"parser": "think2", "known": "deepseek_r1, glm45"},
    ),
    Case(
        Reason.UNKNOWN_PARSER,
        argparse("argument --tool-call-parser: invalid choice: 'glm99' (choose from 'glm45', 'glm47')"),
        3,
        {"argument": "--tool-call-parser", "parser": "glm99"},
    ),
    Case(
        Reason.UNSUPPORTED_ON_ENGINE,
        pydantic("Model Runner V1 does not support: dflash speculative decoding [type=value_error, input_value=x]"),
        6,
        {"runner": "V1", "feature": "dflash speculative decoding"},
    ),
    Case(
        Reason.UNSUPPORTED_ON_ENGINE,
        engine("NotImplementedError: Prefix caching with this model"),
        8,
        {"detail": "Prefix caching with this model"},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_line_that_names_the_cause_is_found(case: Case) -> None:
    check(case)
