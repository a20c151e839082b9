import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.core.errors import CommandLineError
from gb300serve.document.nodes import MapNode, Source
from gb300serve.document.read import parse
from gb300serve.recipe.merge import apply, split_assignment, split_path
from gb300serve.recipe.write import to_yaml

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
    return apply(root(), assignments)


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
    apply(before, ["container.mounts.0.source=/x", "engine.options.speculative_config.schedule.0.0=9"])
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
        ("title=[1", "this is not YAML"),
        ("title=&x 1", "`&x` is an anchor"),
        ("title=a\n---\nb", "a second document"),
        ("title=\udcff", "this is not YAML"),
        ("container.mounts.2.source=/x", "there are 2 items, counted from 0, and none at `2`"),
        ("container.mounts.-1.source=/x", "there are 2 items, counted from 0, and none at `-1`"),
        ("container.mounts.first.source=/x", "there are 2 items, counted from 0, and none at `first`"),
        ("container.mounts.²=/x", "there are 2 items, counted from 0, and none at `²`"),
        ("engine.options.speculative_config.schedule.0.0.x=1", "a single value has no parts, and none at `x`"),
        ("engine.options.max_model_lenn=null", "there is nothing to remove at `max_model_lenn`"),
        ("container.mounts.2=null", "there are 2 items, counted from 0, and none at `2`"),
        ("container.+mounts={a: 1}", "`+mounts` cannot add a mapping to a list"),
        ("container.+env={A: x}", "`+env` cannot add a mapping to nothing"),
        ("extends=v1", "parents are followed before --set"),
    ],
)
def test_what_cannot_be_laid_over(assignment: str, message: str) -> None:
    with pytest.raises(CommandLineError) as error:
        applied(assignment)
    assert error.value.exit_code == 2
    assert error.value.message.startswith(f"--set {assignment}: ")
    assert message in error.value.message


def test_a_list_of_one() -> None:
    with pytest.raises(CommandLineError, match="there is 1 item, counted from 0, and none at `1`"):
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
