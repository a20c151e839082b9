import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.core.values import WrittenFloat, changed_items, compact_json, indented_json

trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(trees)
@settings(derandomize=True, max_examples=200)
def test_both_forms_are_those_of_the_standard_library(value: Any) -> None:
    assert compact_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert indented_json(value) == json.dumps(value, ensure_ascii=False, indent=2)


@pytest.mark.parametrize("text", ["0.90", "0.97", "1.0", "-0.0", "100.000", "0.30000000000000000"])
def test_a_number_is_printed_as_written(text: str) -> None:
    number = WrittenFloat(text)
    assert (str(number), repr(number), compact_json({"a": [number]})) == (text, text, f'{{"a":[{text}]}}')
    assert indented_json([number]) == f"[\n  {text}\n]"
    assert number == float(text)


def test_tuples_and_what_json_does_not_have() -> None:
    assert compact_json((1, ("a",))) == '[1,["a"]]'
    assert indented_json({"a": (), 1: {}}) == '{\n  "a": [],\n  "1": {}\n}'
    assert indented_json({1}) == '"{1}"'


def test_words_that_differ() -> None:
    assert changed_items(["a", "b", "c"], ["a", "x", "c"]) == (["b"], ["x"])
    assert changed_items(["a"], ["a", "b", "c"]) == ([], ["b", "c"])
    assert changed_items(["a", "b"], []) == (["a", "b"], [])
    assert changed_items(["--a", "1", "--b", "1"], ["--b", "1"]) == (["--a", "1"], [])


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
@settings(derandomize=True, max_examples=100)
def test_nothing_is_lost(before: list[str], after: list[str]) -> None:
    removed, added = changed_items(before, after)
    assert (removed == [] and added == []) == (before == after)
    assert sorted([*before, *added]) == sorted([*after, *removed])
