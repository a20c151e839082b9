from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.core.errors import CommandLineError
from gb300serve.document.nodes import MapNode, Source
from gb300serve.document.read import parse
from gb300serve.recipe.merge import Merge, apply_assignments, is_single_value, split_assignment, split_path
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
        ("a: 1\nb: 2\n", "c: 3\na: 4\n", "a: 4\nb: 2\nc: 3\n"),
        ("a: {x: 1, k: 2}\n", "a: {z: 3, x: 4}\n", "a: {x: 4, k: 2, z: 3}\n"),
        ("a: [1, 2]\n", "a: [3]\n", "a: [3]\n"),
        ("a: [1, 2]\n", "+a: [3]\n", "a: [1, 2, 3]\n"),
        ("b: 1\n", "+a: [3]\n", "b: 1\na: [3]\n"),
        ("b: 1\n", "+a: {x: 1, k: null, +z: {w: 2}}\n", "b: 1\na:\n  x: 1\n  z: {w: 2}\n"),
        ("a: 1\nb: 2\n", "a: null\n", "b: 2\n"),
        ("a: {x: 1, k: 2}\n", "a: {x: null}\n", "a: {k: 2}\n"),
        ("a: {x: 1}\n", "a: text\n", "a: text\n"),
        ("a: text\n", "a: {x: 1}\n", "a: {x: 1}\n"),
        ("a: {x: {k: 1}}\n", "a: {x: {z: 2}}\n", "a:\n  x: {k: 1, z: 2}\n"),
        ("a: 1\n", "b: null\n", "a: 1\n"),
        ("a: 0.90\n", "b: 0.10\n", "a: 0.90\nb: 0.10\n"),
        ("evidence: [1]\nextends: v0\na: 1\n", "b: 2\n", "a: 1\nb: 2\n"),
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
        ("b: 1", "+a: text", "`+a` cannot add a single value to nothing"),
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


MOUNTS = "container: {mounts: [{source: /a, target: /x}, {source: /b, target: /z}]}\n"


@pytest.mark.parametrize(
    ("added", "result"),
    [
        ("[{source: /c, target: /x, replace: true}]", "[{source: /c, target: /x}, {source: /b, target: /z}]"),
        ("[{source: /c, target: /x/, replace: true}]", "[{source: /c, target: /x/}, {source: /b, target: /z}]"),
        (
            "[{source: /n, target: /n}, {replace: true, source: /c, target: /z, read_only: true}]",
            "[{source: /a, target: /x}, {source: /c, target: /z, read_only: true}, {source: /n, target: /n}]",
        ),
    ],
)
def test_a_mount_is_replaced_by_its_target(added: str, result: str) -> None:
    wanted = to_yaml(node(f"container: {{mounts: {result}}}\n"))
    assert merged(MOUNTS, f"container:\n  +mounts: {added}\n") == wanted
    assert merged(MOUNTS, f"+container:\n  +mounts: {added}\n") == wanted


@pytest.mark.parametrize(
    ("parent", "entry", "message", "hint"),
    [
        (
            MOUNTS,
            "{source: /c, target: /y, replace: true}",
            "the parent has no mount with the target /y",
            "the parent's mounts have the targets /x, /z",
        ),
        (
            "container: {gpus: all}\n",
            "{source: /c, target: /y, replace: true}",
            "the parent has no mount with the target /y",
            "the parent has no mounts: remove `replace`",
        ),
        (
            MOUNTS,
            "{source: /c, target: /x, replace: false}",
            "`replace` is either `true` or left out",
            "write `replace: true`",
        ),
    ],
)
def test_a_mount_that_replaces_none(parent: str, entry: str, message: str, hint: str) -> None:
    merge = Merge()
    merge.inherit(node(parent), node(f"container:\n  +mounts:\n    - {entry}\n"))
    assert [(d.code, d.message, d.hint, d.line) for d in merge.problems] == [("EXT005", message, hint, 3)]


def test_values_keep_the_place_where_they_are_written() -> None:
    result = Merge().inherit(node("a: {x: 1,\n  k: 2}\n"), node("\n\n\na: {k: 3}\n"))
    inner = result["a"]
    assert (inner.spots["x"].value.line, inner.spots["k"].value.line) == (0, 3)


def test_neither_side_is_changed() -> None:
    parent, child = node("a: {x: 1}\nb: [1]\n"), node("a: {k: 2}\n+b: [2]\n")
    Merge().inherit(parent, child)
    assert (parent, child) == ({"a": {"x": 1}, "b": [1]}, {"a": {"k": 2}, "+b": [2]})


def test_what_replaces_as_a_whole() -> None:
    assert is_single_value(("engine", "options", "x"))
    assert is_single_value(("container", "secrets", "K"))
    assert is_single_value(("container", "gpus"))
    assert not is_single_value(("engine", "options"))
    assert not is_single_value(("container", "env"))


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


TEXT = """\
title: A bench
container:
  labels: {"a.b": x}
  mounts:
    - {source: /a, target: /b}
    - {source: /c, target: /d}
engine:
  options:
    max_model_len: 4096
    speculative_config: {method: dspark, schedule: [[1, 4, 5], [5, 16, 1]]}
"""


def root() -> MapNode:
    found = parse(Source("f", TEXT)).root
    assert isinstance(found, MapNode)
    return found


def applied(*assignments: str) -> MapNode:
    return apply_assignments(root(), assignments)


@pytest.mark.parametrize(
    ("assignment", "old", "new"),
    [
        ("title=Another", "title: A bench", "title: Another"),
        ("engine.options.max_model_len=8192", "4096", "8192"),
        ("engine.options.speculative_config.method=mtp", "method: dspark", "method: mtp"),
        ("engine.options.speculative_config.schedule.0.1=3", "[1, 4, 5]", "[1, 3, 5]"),
        ("engine.options.speculative_config.schedule.1=[5, 8, 2]", "[5, 16, 1]", "[5, 8, 2]"),
        ("engine.options.speculative_config={a: 1}", "{method: dspark, schedule: [[1, 4, 5], [5, 16, 1]]}", "{a: 1}"),
        ("engine.options.+speculative_config={+schedule: [[17, 32, 1]]}", "[5, 16, 1]]", "[5, 16, 1], [17, 32, 1]]"),
        ("engine.options.max_model_len=null", "    max_model_len: 4096\n", ""),
        ('container.labels["a.b"]=z', '"a.b": x', '"a.b": z'),
        ('container["labels"]["a.b"]="=["', '"a.b": x', '"a.b": "=["'),
        ("container.labels.c=a=b", '"a.b": x', '"a.b": x, c: a=b'),
        ("container.mounts.1.source=/e", "source: /c", "source: /e"),
        ("container.mounts.0={source: /x, target: /y}", "source: /a, target: /b", "source: /x, target: /y"),
        (
            "container.+mounts=[{source: /e, target: /f}]",
            "target: /d}\n",
            "target: /d}\n    - {source: /e, target: /f}\n",
        ),
        ("container.mounts.0.read_only=true", "target: /b", "target: /b, read_only: true"),
        ("engine.options.new.deeper=0.90", "method: dspark", "method: dspark"),
    ],
)
def test_a_value_is_laid_over(assignment: str, old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    wanted = parse(Source("f", TEXT.replace(old, new))).root
    if "deeper" in assignment:
        wanted["engine"]["options"]["new"] = {"deeper": 0.9}
    assert to_yaml(applied(assignment)) == to_yaml(wanted).replace("0.9}", "0.90}")


def test_several_in_order() -> None:
    found = applied("engine.options.max_num_seqs=4", "engine.options.max_num_seqs=8", "title=B")
    assert (found["engine"]["options"]["max_num_seqs"], found["title"]) == (8, "B")


def test_the_recipe_is_not_changed() -> None:
    before = root()
    apply_assignments(before, ["container.mounts.0.source=/x", "engine.options.speculative_config.schedule.0.0=9"])
    assert before == root()


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("title", "not PATH=VALUE"),
        ("=1", "not PATH=VALUE"),
        ("a..b=1", "not PATH=VALUE"),
        ("a.=1", "not PATH=VALUE"),
        (".a=1", "not PATH=VALUE"),
        ("a[0]=1", "not PATH=VALUE"),
        ('a["b"]c=1', "not PATH=VALUE"),
        ("title=", "no value"),
        ("title= ", "no value"),
        ("title=yes", "`yes` is read as a boolean"),
        ("title=0x10", "`0x10` is read as a hexadecimal number"),
        ("title=[1", "invalid YAML"),
        ("title=&x 1", "`&x` is an anchor"),
        ("title=a\n---\nb", "a second document"),
        ("title=\udcff", "invalid YAML"),
        ("container.mounts.2.source=/x", "the list has 2 items (counted from 0), none at `2`"),
        ("container.mounts.-1.source=/x", "the list has 2 items (counted from 0), none at `-1`"),
        ("container.mounts.first.source=/x", "the list has 2 items (counted from 0), none at `first`"),
        ("container.mounts.²=/x", "the list has 2 items (counted from 0), none at `²`"),
        ("engine.options.speculative_config.schedule.0.0.x=1", "a single value has no keys, none at `x`"),
        ("engine.options.max_model_lenn=null", "nothing to remove at `max_model_lenn`"),
        ("container.mounts.2=null", "the list has 2 items (counted from 0), none at `2`"),
        ("container.+mounts={a: 1}", "`+mounts` cannot add a mapping to a list"),
        ("container.+env=x", "`+env` cannot add a single value to nothing"),
        ("extends=v1", "parents are resolved before --set"),
    ],
)
def test_what_cannot_be_laid_over(assignment: str, message: str) -> None:
    with pytest.raises(CommandLineError) as error:
        applied(assignment)
    assert error.value.exit_code == 2
    assert error.value.message.startswith(f"--set {assignment}: ")
    assert message in error.value.message


def test_a_list_of_one() -> None:
    with pytest.raises(CommandLineError, match="the list has 1 item \\(counted from 0\\), none at `1`"):
        applied("container.mounts=[{source: /a, target: /b}]", "container.mounts.1.source=/x")


@given(st.lists(st.text(alphabet="ab.-+=[] ü", min_size=1, max_size=4), min_size=1, max_size=5))
@settings(derandomize=True, max_examples=200)
def test_any_keys_make_a_path(keys: list[str]) -> None:
    quoted = "".join(f'["{key}"]' for key in keys)
    assert split_path(quoted) == tuple(keys)
    assert split_assignment(f"{quoted}=v=w") == (quoted, "v=w")
    plain = [key for key in keys if not set(key) & set(".[]=")]
    if plain:
        assert split_path(".".join(plain)) == tuple(plain)


def test_what_is_only_passed_through_still_stands_in_the_file() -> None:
    laid = applied("engine.options.max_model_len=1", "container.mounts.0.source=/x")
    found = {}
    for path in ("engine", "engine.options", "engine.options.max_model_len", "container", "container.mounts"):
        node, *words = laid, *path.split(".")
        for word in words[:-1]:
            node = node[word]
        spot = node.spots[words[-1]]
        found[path] = (spot.source.name, spot.key.line + 1)
    assert found == {
        "engine": ("f", 7),
        "engine.options": ("f", 8),
        "engine.options.max_model_len": ("--set engine.options.max_model_len=1", 1),
        "container": ("f", 2),
        "container.mounts": ("f", 4),
    }
    first, second = laid["container"]["mounts"].spots
    assert (first.source.name, second.source.name) == ("f", "f")
