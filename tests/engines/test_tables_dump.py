"""scripts/dump-engine-options, on a parser of our own: the engine's is not installed here."""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest

from tests.engines.scripts import script

TOOL = script("dump-engine-options")


class Mode(Enum):
    FAST = 1


@dataclass
class EngramConfig:
    cpu_offload: bool = True
    sizes: list[int] = field(default_factory=list)
    made: int = field(default=0, init=False)


def parse_dataclass(word: str, cls: type = EngramConfig) -> Any:
    return cls(**json.loads(word))


def optional_type(inner: Callable[[str], Any]) -> Callable[[str], Any]:
    def _optional_type(word: str) -> Any:
        return None if word == "None" else inner(word)

    return _optional_type


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    made.add_argument("model_tag", nargs="?")
    made.add_argument("-tp", "--tensor-parallel-size", type=int, default=1)
    made.add_argument("--eager", action=argparse.BooleanOptionalAction, default=False)
    made.add_argument("--engram-config", type=optional_type(parse_dataclass))
    made.add_argument("--mode", choices=["a", "b"], default=Mode.FAST)
    hidden = made.add_argument("--enable-x", action="store_true")
    made._option_string_actions["--no-enable-x"] = hidden
    return made


TP = ["-tp", "--tensor-parallel-size"]
FIELDS = [
    {"name": "cpu_offload", "type": "bool", "constraints": [], "default": True, "init": True},
    {"name": "sizes", "type": "list[int]", "constraints": [], "default": [], "init": True},
    {"name": "made", "type": "int", "constraints": [], "default": 0, "init": False},
]


def row(name: str, dest: str, **more: Any) -> dict[str, Any]:
    usual = {
        "aliases": [name],
        "hidden_aliases": [],
        "action": "_StoreAction",
        "type": None,
        "nargs": None,
        "choices": None,
        "default": None,
        "deprecated": False,
    }
    return {"name": name, "dest": dest, **usual, **more}


def test_arguments() -> None:
    made = parser()
    stored = {"action": "_StoreTrueAction", "nargs": 0, "default": False}
    switch = {"action": "BooleanOptionalAction", "nargs": 0, "default": False}
    assert [TOOL.argument(made, action) for action in made._actions[1:]] == [
        row("model_tag", "model_tag", aliases=[], nargs="?"),
        row("--tensor-parallel-size", "tensor_parallel_size", aliases=TP, type="int", default=1),
        row("--eager", "eager", aliases=["--eager", "--no-eager"], **switch),
        row("--engram-config", "engram_config", type="optional[json-dataclass]"),
        row("--mode", "mode", choices=["a", "b"], default="FAST"),
        row("--enable-x", "enable_x", hidden_aliases=["--no-enable-x"], **stored),
    ]  # fmt: skip


def test_the_configuration_class_behind_an_option_is_found_through_its_wrappers() -> None:
    assert TOOL.dataclass_behind(optional_type(parse_dataclass)) is EngramConfig
    assert TOOL.dataclass_behind(int) is None
    assert TOOL.config(EngramConfig) == {"class": "EngramConfig", "fields": FIELDS}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (None, None),
        (int, "int"),
        (json.loads, "loads"),
        (parse_dataclass, "json-dataclass"),
        (optional_type(json.loads), "optional[loads]"),
        (optional_type(int), "optional[int]"),
    ],
)
def test_names_of_types(kind: Any, name: str | None) -> None:
    assert TOOL.type_name(kind) == name


def test_defaults_as_json() -> None:
    values = [argparse.SUPPRESS, None, Mode.FAST, EngramConfig(), {1: {"b", "a"}}, (1, "x"), object]
    assert [TOOL.plain(value) for value in values] == [
        "==SUPPRESS==",
        None,
        "FAST",
        {"cpu_offload": True, "sizes": [], "made": 0},
        {"1": ["a", "b"]},
        [1, "x"],
        "<class 'object'>",
    ]


def test_the_dump_is_what_option_tables_reads() -> None:
    made = parser()
    actions = made._actions[1:]
    dump = {
        "engine": "vllm",
        "version": "9.0.0",
        "tool_call_parsers": [],
        "reasoning_parsers": [],
        "json_configs": {"--engram-config": TOOL.config(EngramConfig)},
        "args": [TOOL.argument(made, action) for action in actions],
    }
    assert script("option-tables").table(dump)["options"] == {
        "model_tag": {"arity": "optional", "flag": ""},
        "tensor_parallel_size": {"aliases": ["-tp"], "default": 1, "kind": "int"},
        "eager": {"kind": "bool", "off": ["--no-eager"]},
        "engram_config": {
            "class": "EngramConfig",
            "fields": {"cpu_offload": "bool", "sizes": "list"},
            "kind": "json-dataclass",
            "nullable": True,
        },
        "mode": {"choices": ["a", "b"], "default": "FAST"},
        "enable_x": {"kind": "bool", "off": ["--no-enable-x"]},
    }


def test_an_argument_of_sglang_goes_by_its_flag() -> None:
    """Two flags that SGLang keeps under one name stay two options, neither an alias of the other."""
    made = argparse.ArgumentParser()
    made.add_argument("--enable-new", action="store_true")
    old = made.add_argument("--old-backend", dest="enable_new", choices={"b", "a"})
    made.add_argument("--tp-size", "--tensor-parallel-size", type=int, default=1)
    assert [TOOL.sglang_argument(made, action) for action in made._actions[1:]] == [
        row("--enable-new", "enable_new", action="_StoreTrueAction", nargs=0, default=False),
        row("--old-backend", "old_backend", choices=["a", "b"]),
        row("--tp-size", "tp_size", aliases=["--tp-size", "--tensor-parallel-size"], type="int", default=1),
    ]
    assert old.dest == "enable_new"


def test_a_type_of_sglang_keeps_its_engine_s_name() -> None:
    def human_readable_int(word: str) -> int:
        return int(word)

    human_readable_int.__module__ = "sglang.srt.utils.common"
    assert TOOL.type_name(human_readable_int) == "sglang.human_readable_int"
