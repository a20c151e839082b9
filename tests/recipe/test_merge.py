from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.document.nodes import MapNode, Source
from gb300serve.document.read import parse
from gb300serve.recipe.merge import Merge, replaces_whole
from gb300serve.recipe.write import to_yaml


def node(text: str) -> MapNode:
    document = parse(Source("f", text))
    assert document.problems == []
    assert isinstance(document.root, MapNode)
    return document.root


def merged(parent: str, child: str) -> str:
    merge = Merge()
    result = merge.inherit(node(parent), node(child))
    assert merge.problems == []
    return to_yaml(result)


@pytest.mark.parametrize(
    ("parent", "child", "result"),
    [
        ("a: 1\nb: 2\n", "c: 3\na: 4\n", "{a: 4, b: 2, c: 3}\n"),
        ("a: {x: 1, k: 2}\n", "a: {z: 3, x: 4}\n", "a: {x: 4, k: 2, z: 3}\n"),
        ("a: [1, 2]\n", "a: [3]\n", "a: [3]\n"),
        ("a: [1, 2]\n", "+a: [3]\n", "a: [1, 2, 3]\n"),
        ("a: 1\nb: 2\n", "a: null\n", "{b: 2}\n"),
        ("a: {x: 1, k: 2}\n", "a: {x: null}\n", "a: {k: 2}\n"),
        ("a: {x: 1}\n", "a: text\n", "{a: text}\n"),
        ("a: text\n", "a: {x: 1}\n", "a: {x: 1}\n"),
        ("a: {x: {k: 1}}\n", "a: {x: {z: 2}}\n", "a:\n  x: {k: 1, z: 2}\n"),
        ("a: 1\n", "b: null\n", "{a: 1}\n"),
        ("a: 0.90\n", "b: 0.10\n", "{a: 0.90, b: 0.10}\n"),
        ("evidence: [1]\nextends: v0\na: 1\n", "b: 2\n", "{a: 1, b: 2}\n"),
        ("evidence: [1]\n", "evidence: [2]\n", "evidence: [2]\n"),
    ],
)
def test_mappings_merge_and_the_rest_replaces(parent: str, child: str, result: str) -> None:
    assert merged(parent, child) == result


OPTIONS = "engine: {{options: {{p: 1, o: {0}, q: 2}}}}\n"


@pytest.mark.parametrize(
    ("parent", "child", "result"),
    [
        ("o: {x: 1, k: {z: 1}}", "o: {x: 2}", "o: {x: 2}"),
        ("o: {x: 1, k: {z: 1}}", "+o: {k: {w: 2}}", "o: {x: 1, k: {z: 1, w: 2}}"),
        ("o: {x: 1, k: 2}", "+o: {x: null}", "o: {k: 2}"),
        ("o: {x: 1, k: 2}", "o: {x: null}", "o: {x: null}"),
        ("o: [1]", "+o: [2]", "o: [1, 2]"),
        ("o: {x: [1]}", "+o: {+x: [2]}", "o: {x: [1, 2]}"),
        ("o: {x: [1]}", "+o: {x: [2]}", "o: {x: [2]}"),
        ("o: {x: 1}", "o: null", None),
    ],
)
def test_an_option_is_one_value(parent: str, child: str, result: str | None) -> None:
    wanted = node(f"engine: {{options: {{p: 1, {result + ', ' if result else ''}q: 2}}}}")
    found = merged(f"engine: {{options: {{p: 1, {parent}, q: 2}}}}", f"engine: {{options: {{{child}}}}}")
    assert found == to_yaml(wanted)


@pytest.mark.parametrize(
    ("parent", "child", "result"),
    [
        ("gpus: all", "gpus: {name: GB300}", "gpus: {name: GB300}"),
        ("gpus: {uuid: GPU-1}", "gpus: {name: GB300}", "gpus: {name: GB300}"),
        ("secrets: {K: {env: A}}", "secrets: {K: {file: /k}}", "secrets: {K: {file: /k}}"),
        ("secrets: {K: {env: A}}", "secrets: {L: {env: B}}", "secrets: {K: {env: A}, L: {env: B}}"),
        ("env: {A: x}", "env: {B: z}", "env: {A: x, B: z}"),
    ],
)
def test_a_choice_of_one_key_replaces_as_a_whole(parent: str, child: str, result: str) -> None:
    found = merged(f"container: {{{parent}}}", f"container: {{{child}}}")
    assert found == to_yaml(node(f"container: {{{result}}}"))


@pytest.mark.parametrize(
    ("parent", "child", "message"),
    [
        ("b: 1", "+a: [1]", "`+a` cannot add a list to nothing"),
        ("a: [1]", "+a: {x: 1}", "`+a` cannot add a mapping to a list"),
        ("a: {x: 1}", "+a: [1]", "`+a` cannot add a list to a mapping"),
        ("a: text", "+a: more", "`+a` cannot add a single value to a single value"),
        ("a: [1]", "+a: null", "`+a` cannot add nothing to a list"),
    ],
)
def test_what_cannot_be_added(parent: str, child: str, message: str) -> None:
    merge = Merge()
    merge.inherit(node(parent), node(child))
    assert [(d.code, d.message, d.hint, d.line, d.column) for d in merge.problems] == [
        ("EXT004", message, "write `a:` to replace it", 1, 1)
    ]


def test_values_keep_the_place_where_they_are_written() -> None:
    result = Merge().inherit(node("a: {x: 1,\n  k: 2}\n"), node("\n\n\na: {k: 3}\n"))
    inner = result["a"]
    assert (inner.spots["x"].value.line, inner.spots["k"].value.line) == (0, 3)


def test_neither_side_is_changed() -> None:
    parent, child = node("a: {x: 1}\nb: [1]\n"), node("a: {k: 2}\n+b: [2]\n")
    Merge().inherit(parent, child)
    assert (parent, child) == ({"a": {"x": 1}, "b": [1]}, {"a": {"k": 2}, "+b": [2]})


def test_what_replaces_as_a_whole() -> None:
    assert replaces_whole(("engine", "options", "x"))
    assert replaces_whole(("container", "secrets", "K"))
    assert replaces_whole(("container", "gpus"))
    assert not replaces_whole(("engine", "options"))
    assert not replaces_whole(("container", "env"))


names = st.text(alphabet="abc", min_size=1, max_size=2)
trees = st.recursive(
    st.integers(0, 9) | st.text("xyz", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(names, trees, min_size=1, max_size=4)


def laid(parent: dict[str, Any], child: dict[str, Any]) -> MapNode:
    return Merge().inherit(node(to_yaml(parent)), node(to_yaml(child)))


@given(documents, documents)
@settings(derandomize=True, max_examples=100)
def test_the_laws_of_merging(parent: dict[str, Any], child: dict[str, Any]) -> None:
    result = laid(parent, child)
    assert list(result) == [*parent, *(key for key in child if key not in parent)]
    assert laid(result, child) == result
    assert laid(parent, parent) == parent
    assert laid(parent, dict.fromkeys(parent)) == {}
    for key, value in child.items():
        if not isinstance(value, dict):
            assert result[key] == value


leaves = st.integers(0, 9) | st.lists(st.integers(0, 9), max_size=2)
sections = st.dictionaries(names, leaves, max_size=3)
alike = st.fixed_dictionaries({}, optional={"x": leaves, "z": leaves, "p": sections, "q": sections})


@given(alike, alike, alike)
@settings(derandomize=True, max_examples=100)
def test_a_chain_is_the_same_from_either_end(a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]) -> None:
    assert laid(laid(a, b), c) == laid(a, laid(b, c))
