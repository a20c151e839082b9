"""scripts/option-tables: from a parser dump to a shipped table."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.options import (
    EngineOption,
    JsonField,
    first_text,
    is_secret,
    model_first,
    option_arguments,
    plain_arguments,
    read_option,
    reads_as_flag,
    texts,
    whole,
)
from gb300serve.engines.parse import parse_argv
from gb300serve.engines.tables import table, versions
from tests.engines.samples import DAY_ZERO
from tests.engines.scripts import ROOT, script


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, ("--a-b",)),
        (False, ()),
        (None, ()),
        (WrittenFloat("0.90"), ("--a-b", "0.90")),
        (["x", 1], ("--a-b", "x", "1")),
        ({"k": [1]}, ("--a-b", '{"k":[1]}')),
        ("-x", ("--a-b=-x",)),
    ],
)
def test_the_common_form(value: Value, words: tuple[str, ...]) -> None:
    assert plain_arguments("a_b", value) == words


def test_the_model_comes_first_and_the_rest_keeps_its_order() -> None:
    assert list(model_first({"b": 1, "model_tag": "m", "a": 2})) == [("model_tag", "m"), ("b", 1), ("a", 2)]
    assert list(model_first({"b": 1, "a": 2})) == [("b", 1), ("a", 2)]


def test_narrowing() -> None:
    assert (texts("a"), texts(["a", 1, "b"]), texts(None)) == (("a",), ("a", "b"), ())
    assert (first_text({"b": "x", "a": 1}, "a", "b"), first_text({}, "a")) == ("x", None)
    assert (whole(3, 1), whole(True, 1), whole("3", 1), whole(None, 1)) == (3, 1, 1, 1)


SAID: list[tuple[str, Value, tuple[str, ...]]] = [
    ("cpu_offload_gb", 60, ("--cpu-offload-gb", "60")),
    ("gpu_memory_utilization", WrittenFloat("0.90"), ("--gpu-memory-utilization", "0.90")),
    ("cpu_offload_params", ["a", "b"], ("--cpu-offload-params", "a", "b")),
    ("cpu_offload_params", "a", ("--cpu-offload-params", "a")),
    ("engram_config", {"cpu_offload": True}, ("--engram-config", '{"cpu_offload":true}')),
    ("allowed_origins", ["*", "ü"], ("--allowed-origins", '["*","ü"]')),
    ("middleware", ["a", "b"], ("--middleware", "a", "--middleware", "b")),
    ("lora_modules", ["a=/b", {"name": "c"}], ("--lora-modules", "a=/b", '{"name":"c"}')),
    ("trust_remote_code", True, ("--trust-remote-code",)),
    ("trust_remote_code", False, ("--no-trust-remote-code",)),
    ("enable_prefix_caching", False, ("--no-enable-prefix-caching",)),
    ("hf_token", True, ("--hf-token",)),
    ("hf_token", "x", ("--hf-token", "x")),
    ("max_model_len", -1, ("--max-model-len", "-1")),
    ("max_model_len", "1M", ("--max-model-len", "1M")),
    ("chat_template", "--x.y", ("--chat-template=--x.y",)),
    ("video_pruning_rate", WrittenFloat("-0.5"), ("--video-pruning-rate=-0.5",)),
    ("chat_template", "", ("--chat-template", "")),
    ("model_tag", "/model", ("/model",)),
    ("api_key", "${secret:KEY}", ("--api-key", "${secret:KEY}")),
    ("port", None, ()),
]


@pytest.mark.parametrize(("key", "value", "expected"), SAID)
@pytest.mark.parametrize("version", [DAY_ZERO, "0.33.0"])
def test_arguments(version: str, key: str, value: Value, expected: tuple[str, ...]) -> None:
    option = table("vllm", version).find(key)
    assert option is not None
    assert option_arguments(option, value) == expected


@given(st.text())
def test_any_text_survives_the_engine_s_parser(text: str) -> None:
    shipped = table("vllm", DAY_ZERO)
    option = shipped.find("response_role")
    assert option is not None
    argv = ("/model", *option_arguments(option, text), "--port", "1")
    assert parse_argv(argv, shipped) == {"model": "/model", "response_role": text, "port": 1}


def test_what_reads_as_a_flag() -> None:
    assert [word for word in ("-", "-x", "--x", "-1", "-1.5", "x-y", "") if reads_as_flag(word)] == [
        "-x",
        "--x",
        "-1.5",
    ]


def test_secrets() -> None:
    assert [value for value in ("${secret:A}", "x${secret:A}", "${secret:}", 1, "$") if is_secret(value)] == [
        "${secret:A}"
    ]


def told(key: str, value: Value) -> list[tuple[tuple[str | int, ...], str, str, str | None]]:
    problems = table("vllm", DAY_ZERO).check(key, value)
    return [(problem.path[1:], problem.code, problem.message, problem.hint) for problem in problems]


def test_unknown_key_gets_the_right_name() -> None:
    assert told("engram_config", {"cpu_ofload": True}) == [
        (("cpu_ofload",), "OPT006", "engram_config has no 'cpu_ofload'", "write 'cpu_offload'")
    ]


def test_unknown_key_far_from_all_lists_them() -> None:
    assert told("engram_config", {"x": 1}) == [
        (("x",), "OPT006", "engram_config has no 'x'", "it takes cpu_offload, dp_shared_memory, embedding_across_dp")
    ]


def test_types_choices_and_bounds() -> None:
    written: dict[str, Value] = {
        "method": "dsparc",
        "num_speculative_tokens": 0,
        "enforce_eager": "yes",
        "draft_tensor_parallel_size": "1",
        "suffix_decoding_min_token_prob": True,
    }
    assert told("speculative_config", written) == [
        (
            ("method",),
            "OPT003",
            'speculative_config.method is "dsparc", which is not a valid value',
            "write dspark",
        ),
        (
            ("num_speculative_tokens",),
            "OPT007",
            "speculative_config.num_speculative_tokens is 0, not greater than 0",
            "write a number greater than 0",
        ),
        (("enforce_eager",), "OPT002", 'speculative_config.enforce_eager is "yes", not true or false or null', None),
        (
            ("draft_tensor_parallel_size",),
            "OPT002",
            'speculative_config.draft_tensor_parallel_size is "1", not a whole number or null',
            None,
        ),
        (
            ("suffix_decoding_min_token_prob",),
            "OPT002",
            "speculative_config.suffix_decoding_min_token_prob is true, not a number",
            None,
        ),
    ]  # fmt: skip


def test_what_the_engine_takes() -> None:
    assert told("speculative_config", {"method": "dspark", "model": None, "num_speculative_tokens": 5}) == []
    assert told("kernel_config", {"moe_backend": "FlashInfer-TRTLLM", "enable_flashinfer_autotune": None}) == []
    assert told("compilation_config", {"mode": 3, "cudagraph_mode": "PIECEWISE", "pass_config": {}}) == []
    assert told("speculative_config", {"suffix_decoding_min_token_prob": WrittenFloat("0.1")}) == []


def test_options_without_a_configuration_class_take_any_key() -> None:
    assert told("hf_overrides", {"anything": 1}) == []


def test_a_row_says_only_what_is_not_common() -> None:
    common = read_option("a_b", {})
    assert common == EngineOption(
        key="a_b",
        flag="--a-b",
        kind="text",
        arity="one",
        aliases=(),
        off=(),
        choices=(),
        folds=False,
        nullable=False,
        plain=False,
        shape="mapping",
        default=None,
        fields=None,
        config=None,
    )
    assert (common.takes_json, common.positional, common.shown) == (False, False, "--a-b")


def test_a_full_row() -> None:
    row = {
        "flag": "",
        "kind": "json-dataclass",
        "arity": "many",
        "aliases": ["-a"],
        "off": ["--no-a"],
        "choices": ["x"],
        "folds": True,
        "nullable": True,
        "plain": True,
        "shape": "list",
        "default": 1,
        "deprecated": True,
        "class": "AConfig",
        "refusal": "not {word}",
        "fields": {"n": {"kind": "int|null", "ge": 1, "lt": 9, "choices": [2, 3]}, "s": "text"},
    }
    full = read_option("a", row)
    fields = {
        "n": JsonField(frozenset({"int", "null"}), (2, 3), (("ge", 1), ("lt", 9))),
        "s": JsonField(frozenset({"text"})),
    }
    assert full == EngineOption(
        "a", "", "json-dataclass", "many", ("-a",), ("--no-a",), ("x",),
        True, True, True, "list", 1, fields, "AConfig", "not {word}",
    )  # fmt: skip
    assert (full.takes_json, full.positional, full.shown) == (True, True, "a")


TOOL = script("option-tables")
TABLES = ROOT / "src/gb300serve/engines/tables"


def entry(name: str, **more: Any) -> dict[str, Any]:
    dest = name.lstrip("-").replace("-", "_")
    usual = {"action": "_StoreAction", "type": None, "nargs": None, "choices": None, "default": None}
    return {"name": name, "aliases": [name] if name.startswith("-") else [], "dest": dest, **usual, **more}


SWITCH = {"action": "BooleanOptionalAction", "nargs": 0}
ROWS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (entry("--host", type="optional[str]"), {"nullable": True}),
    (entry("--tokenizer", type="str"), {}),
    (entry("model_tag", type="str", nargs="?"), {"arity": "optional", "flag": ""}),
    (entry("--port", type="int", default=8000), {"default": 8000, "kind": "int"}),
    (entry("--x", type="human_readable_int_or_auto"), {"kind": "human-int-or-auto"}),
    (entry("--x", type="optional[human_readable_int]"), {"kind": "human-int", "nullable": True}),
    (entry("--x", type="json-dataclass"), {"kind": "json-dataclass"}),
    (entry("--x", type="loads", default=["*"]), {"kind": "json-loads", "plain": True, "shape": "list"}),
    (entry("--x", type="optional[loads]"), {"kind": "json-loads", "nullable": True}),
    (entry("--x", type="_parse_type"), {"kind": "json-loads"}),
    (entry("--x", type="json-or-str"), {"kind": "json-or-text"}),
    (entry("--x", type="lambda:f", choices=["a"], default="a"), {"choices": ["a"], "default": "a", "folds": True}),
    (entry("--x", type="lambda:f"), {}),
    (entry("--x", type="str", nargs="+"), {"arity": "many"}),
    (entry("--x", type="sglang.human_readable_int"), {"kind": "si-int"}),
    (entry("--x", type="sglang.nullable_str"), {"nullable": True}),
    (
        entry("--x", type="sglang.json_list_type"),
        {
            "kind": "json-loads",
            "refusal": "Invalid JSON list: {word}. Please provide a valid JSON list.",
            "shape": "list",
        },
    ),
    (entry("--hisparse-config", type="str"), {"kind": "json-or-text"}),
    (entry("--x", action="LoRAPathAction", nargs="*"), {"arity": "many", "kind": "json-or-text"}),
    (entry("--x", action="LoRAParserAction", nargs="+"), {"arity": "many", "kind": "json-or-text"}),
    (entry("--x", action="_AppendAction", type="str"), {"arity": "append"}),
    (entry("--x", choices=["a", None, "None"]), {"choices": ["a", None, "None"]}),
    (entry("--x", deprecated=True), {"deprecated": True}),
    (entry("--headless", action="_StoreTrueAction", nargs=0), {"kind": "bool"}),
    (
        entry("--x", aliases=["--x", "--no-x", "-y"], **SWITCH),
        {"aliases": ["-y"], "kind": "bool", "off": ["--no-x"]},
    ),
    (
        entry("--enable-x", aliases=["--enable-x", "--disable-x"], hidden_aliases=["--no-enable-x"], **SWITCH),
        {"kind": "bool", "off": ["--no-enable-x", "--disable-x"]},
    ),
    (
        entry("--disable-x", aliases=["--disable-x", "--enable-x"], **SWITCH),
        {"kind": "bool", "off": ["--enable-x"]},
    ),
    (entry("--long", aliases=["--long", "-l"], dest="other"), {"aliases": ["-l"], "flag": "--long"}),
]


@pytest.mark.parametrize(("argument", "row"), ROWS)
def test_one_argument(argument: dict[str, Any], row: dict[str, Any]) -> None:
    assert TOOL.option(argument, None) == row
    assert list(TOOL.option(argument, None)) == sorted(row)


@pytest.mark.parametrize(
    ("annotation", "default", "constraints", "rule"),
    [
        ("bool", True, [], "bool"),
        ("bool", None, [], "bool|null"),
        ("int | None", None, ["Ge(ge=1)", "MinLen(min_length=1)"], {"kind": "int|null", "ge": 1}),
        ("float", 0.3, ["Gt(gt=0)", "Le(le=1.5)"], {"kind": "float", "gt": 0, "le": 1.5}),
        ("Optional[Literal['a', 'b']]", None, [], {"kind": "null|text", "choices": ["a", "b"]}),
        ("Optional[Literal[2, 3]]", None, [], {"kind": "int|null", "choices": [2, 3]}),
        ("Union[Literal['a'], str, NoneType]", None, [], "null|text"),
        ("list[tuple[int, int, int]] | None", None, [], "list|null"),
        ("dict[str, Literal['a']] | None", None, [], "mapping|null"),
        ("set[str]", [], [], "list"),
        ("collections.Counter[str]", {}, [], "mapping"),
        ("vllm.config.load.LoadConfig | None", None, [], "any"),
        ("<enum 'CompilationMode", None, [], "any"),
    ],
)
def test_one_field(annotation: str, default: object, constraints: list[str], rule: object) -> None:
    field = {"name": "x", "type": annotation, "default": default, "constraints": constraints, "init": True}
    assert TOOL.field(field) == rule


DUMP = {
    "engine": "vllm",
    "version": "9.0.0",
    "tool_call_parsers": ["b", "a"],
    "reasoning_parsers": [],
    "json_configs": {
        "--x-config": {
            "class": "XConfig",
            "fields": [
                {"name": "b", "type": "bool", "default": True, "constraints": [], "init": True},
                {"name": "a", "type": "int", "default": 1, "constraints": [], "init": True},
                {"name": "made", "type": "int", "default": 1, "constraints": [], "init": False},
                {"name": "_own", "type": "int", "default": 1, "constraints": [], "init": True},
            ],
        },
        "--y-config": None,
    },
    "args": [entry("--x-config", type="json-dataclass"), entry("--port", type="int", default=8000)],
}
TABLE = """\
{"engine":"vllm",
"version":"9.0.0",
"stands_on":"the parser of vllm 9.0.0",
"tool_call_parsers":["a","b"],
"reasoning_parsers":[],
"options":{
"port":{"default":8000,"kind":"int"},
"x_config":{"class":"XConfig","fields":{"a":"int","b":"bool"},"kind":"json-dataclass"}
}}
"""
OVERLAY = {
    "engine": "vllm",
    "version": "9.0.dev1+gabc",
    "derived_from": "9.0.0",
    "stands_on": "vllm 9.0.0 and its launches",
    "add": {"new": {"kind": "bool"}},
    "remove": {"x_config": "newer"},
    "refused": {"gone": "do without"},
    "proven": ["port"],
}
DERIVED = """\
{"engine":"vllm",
"version":"9.0.dev1+gabc",
"stands_on":"vllm 9.0.0 and its launches",
"tool_call_parsers":["a","b"],
"reasoning_parsers":[],
"derived_from":"9.0.0",
"refused":{"gone":"do without"},
"options":{
"new":{"kind":"bool"},
"port":{"default":8000,"kind":"int"}
}}
"""


def test_dump_and_overlay_become_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump, overlay = tmp_path / "dump", tmp_path / "overlay"
    dump.write_text(json.dumps(DUMP))
    overlay.write_text(json.dumps(OVERLAY))
    TOOL.main([str(dump), "--overlay", str(overlay), "--out", str(tmp_path)])
    assert (tmp_path / "vllm-9.0.0.json").read_text() == TABLE
    assert (tmp_path / "vllm-9.0.dev1+gabc.json").read_text() == DERIVED
    assert capsys.readouterr().out == (
        f"{tmp_path}/vllm-9.0.0.json: 2 options\n{tmp_path}/vllm-9.0.dev1+gabc.json: 2 options\n"
    )


def test_what_launches_proved_must_exist() -> None:
    with pytest.raises(SystemExit, match=r"9\.0\.dev1\+gabc: proven, but not in 9\.0\.0: old"):
        TOOL.derived({**OVERLAY, "proven": ["old", "port"]}, json.loads(TABLE))


@pytest.mark.parametrize("version", versions("vllm"))
def test_shipped_tables_are_in_the_tool_s_form(version: str) -> None:
    text = (TABLES / f"vllm-{version}.json").read_text()
    assert TOOL.written(json.loads(text)) == text


def test_the_day_zero_table_is_what_its_overlay_makes() -> None:
    overlay = json.loads((TABLES / "overlays" / f"vllm-{DAY_ZERO}.json").read_text())
    base = json.loads((TABLES / "vllm-0.30.0.json").read_text())
    assert TOOL.written(TOOL.derived(overlay, base)) == (TABLES / f"vllm-{DAY_ZERO}.json").read_text()
