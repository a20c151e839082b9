from pathlib import Path
from textwrap import indent
from typing import Any

import jsonschema  # type: ignore[import-untyped] # its stubs would be one more dependency for a few tests
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.core.values import WrittenFloat
from gb300serve.document.nodes import Source
from gb300serve.document.read import parse
from gb300serve.recipe.write import recipe_schema, to_yaml, with_entries
from tests.support.recipes import ENGINE, alone, child

HOSTILE = (
    "", " ", "a b", "-", "--flag", "'", '"', "`", "$HOME", "${cache}", "{a: b}", "[1, 2]", "a: b", "a #b", "#", "!tag",
    "&x", "*x", "%", "@", "?", "? a", ":", ": ", "<<", "=", "~", "null", "true", "yes", "n", "0", "-0", "0.90", "1e3",
    "0x1", "1:30", "2026-09-15", "a\nb", "a\n", "\na", "a\tb", "ü", "日本", "😀", "\\", "\\n", "a\\", "|", ">", "---",
    "...", "\u00a0", "x" * 300, "a, b", "]", "}", "text with trailing ", " leading", "8021:8000",
)  # fmt: skip

texts = st.sampled_from(HOSTILE) | st.text(alphabet=st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]))
numbers = st.integers() | st.from_regex(r"-?(0|[1-9][0-9]{0,8})\.[0-9]{1,6}", fullmatch=True).map(WrittenFloat)
leaves = texts | numbers | st.booleans() | st.none()
trees = st.recursive(leaves, lambda x: st.lists(x, max_size=4) | st.dictionaries(texts, x, max_size=4), max_leaves=12)


def read(text: str) -> Any:
    document = parse(Source("f", text))
    assert document.problems == [], text
    return document.root


@given(trees)
@settings(derandomize=True, max_examples=300)
def test_what_is_written_is_read_back(value: Any) -> None:
    root = read(to_yaml({"a": value}))
    assert root == {"a": value}
    assert repr(root) == repr({"a": value})


@given(trees)
@settings(derandomize=True, max_examples=100)
def test_other_readers_read_the_same(value: Any) -> None:
    assert yaml.safe_load(to_yaml({"a": value})) == {"a": value}


def test_each_hostile_text_as_value_and_as_key() -> None:
    for text in HOSTILE:
        assert read(to_yaml({"a": text, "b": [text], "c": {text: 1}})) == {"a": text, "b": [text], "c": {text: 1}}


def test_a_value_that_stands_twice_is_written_twice() -> None:
    shared = {"x": [1]}
    assert to_yaml({"a": shared, "b": shared}) == "a:\n  x: [1]\nb:\n  x: [1]\n"


def test_numbers_keep_their_spelling() -> None:
    assert to_yaml({"a": WrittenFloat("0.90"), "b": 60}) == "a: 0.90\nb: 60\n"


SHIPPED = sorted(path for path in (Path(__file__).parents[2] / "recipes").glob("*/*.yaml") if path.stem != "lane")


def errors(text: str) -> list[str]:
    validator = jsonschema.Draft202012Validator(recipe_schema())
    return [error.message for error in validator.iter_errors(yaml.safe_load(text))]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_recipes_fit(path: Path) -> None:
    assert errors(path.read_text()) == []


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(recipe_schema())


@pytest.mark.parametrize(
    "text",
    [
        alone(),
        child("+limits: [x]\ncontainer: {gpus: null, +mounts: [], secrets: {K: {env: K}}}\n"),
        child("container: {gpus: {name: GB300}, ulimits: {nofile: {soft: 1, hard: 2}}, restart: on-failure:3}\n"),
    ],
)
def test_what_fits(text: str) -> None:
    assert errors(text) == []


@pytest.mark.parametrize(
    "text",
    [
        alone().replace("title:", "titel:"),
        alone(ENGINE + "limits: text\n"),
        alone("limits: []\n"),
        alone("engine: {version: 0.33.0}\n"),
        alone(ENGINE + "container: {gpus: {device: 1}}\n"),
        alone(ENGINE + "container: {gpus: 0}\n"),
        child("status: verifed\n"),
    ],
)
def test_what_does_not_fit(text: str) -> None:
    assert errors(text) != []


HEAD = "lane: bench\n"
SIZES = {"weights_gib": 2.5, "parameters": [{"name": "a", "bytes": 1}], "kv_cache": {"bytes_per_token": 8}}
BLOCK = """\
memory:
  weights_gib: 2.5
  parameters:
    - {name: a, bytes: 1}
  kv_cache: {bytes_per_token: 8}
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", BLOCK),
        ("# The end.\n\n", f"# The end.\n{BLOCK}"),
        ("memory: null  # none\ntitle: x\n", f"{BLOCK}title: x\n"),
        ("memory: {weights_gib: 1, layers: 2}\n", BLOCK.replace("  parameters", "  layers: 2\n  parameters")),
        ("+memory:\n    layers: 2", f"+memory:\n    layers: 2\n{indent(BLOCK[8:], '  ').rstrip()}"),
        (
            "memory:\n  kv_cache:\n    # eight\n    bytes_per_token: 9  # nine\n\n"
            "  # A note.\n  basis: |\n    a\n\n# End.\n",
            "memory:\n  kv_cache: {bytes_per_token: 8}\n\n  # A note.\n  basis: |\n    a\n"
            "  weights_gib: 2.5\n  parameters:\n    - {name: a, bytes: 1}\n\n# End.\n",
        ),
    ],
)
def test_entries_of_a_section(before: str, after: str) -> None:
    assert with_entries(HEAD + before, "memory", SIZES) == HEAD + after


def test_no_entries_and_no_mapping_change_nothing() -> None:
    assert with_entries(f"{HEAD}# kept", "memory", {}) == f"{HEAD}# kept"
    assert with_entries("- a\n", "memory", SIZES) == "- a\n"
