"""scripts/option-tables: from a parser dump to a shipped table."""

import json
from pathlib import Path
from typing import Any

import pytest

from gb300serve.engines.tables import versions
from tests.engines.samples import DAY_ZERO
from tests.engines.scripts import ROOT, script

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
