from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.core.values import WrittenFloat
from gb300serve.document.nodes import Source
from gb300serve.document.read import parse
from gb300serve.recipe.write import to_yaml

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
    assert to_yaml({"a": WrittenFloat("0.90"), "b": 60}) == "{a: 0.90, b: 60}\n"
