from pathlib import Path

import pytest

from gb300serve.document.nodes import Source
from gb300serve.document.read import parse
from tests.support.golden import Golden
from tests.support.invoke import run
from tests.support.recipes import EVERYTHING, write

RESOLVED = """\
format: gb300serve/1
lane: bench
release: v2
title: A bench
status: draft
image: {repository: vllm/vllm-openai, tag: v0.33.0}
engine:
  name: vllm
  version: 0.33.0
  options: {model: /model, max_model_len: 8192, gpu_memory_utilization: 0.90}
"""


def test_a_child_resolved(recipes: Path) -> None:
    answer = run("show", "bench/v2", "--recipes", recipes)
    assert (answer.code, answer.out, answer.err) == (0, RESOLVED, "")


def test_what_is_shown_stands_alone(recipes: Path) -> None:
    file = recipes.parent / "alone.yaml"
    file.write_text(run("show", "bench/v2", "--recipes", recipes).out)
    assert run("show", file).out == RESOLVED
    commands = [run("compile", ref, "--recipes", recipes).out for ref in ("bench/v2", str(file))]
    assert commands[0] == commands[1]


def test_everything_is_shown_as_it_is(recipes: Path) -> None:
    write(recipes, {"v1": EVERYTHING})
    shown = parse(Source("shown", run("show", "bench/v1", "--recipes", recipes).out))
    assert shown.problems == []
    assert shown.root == parse(Source("written", EVERYTHING)).root


def test_json(recipes: Path, golden: Golden) -> None:
    answer = run("show", "bench/v2", "--recipes", recipes, "--json", "--set", "engine.options.x.y=[0.50, null]")
    assert answer.code == 2
    answer = run(
        "show", "bench/v2", "--recipes", recipes, "--json", "--set", "engine.options.gpu_memory_utilization=0.50"
    )
    assert answer.code == 0
    golden("show.json", answer.out)


def test_an_assignment(recipes: Path) -> None:
    answer = run("show", "bench/v2", "--recipes", recipes, "--set", "container.gpus={name: GB300}")
    assert answer.code == 0
    assert answer.out == RESOLVED + "container:\n  gpus: {name: GB300}\n"


def test_the_beginning_of_a_child(recipes: Path) -> None:
    answer = run("show", "bench/v2", "--recipes", recipes, "--as", "v3")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == (
        "format: gb300serve/1\nlane: bench\nrelease: v3\ntitle: Draft from v2\nstatus: draft\nextends: v2\n"
        "# Write below only what differs from v2: `gb300serve help recipe`\n"
    )
    write(recipes, {"v3": answer.out})
    commands = [run("compile", f"bench/{release}", "--recipes", recipes).out for release in ("v2", "v3")]
    assert commands[0] == commands[1]


def test_a_copy_for_another_lane(recipes: Path) -> None:
    words = ("--as", "other/v1", "--copy", "--set", "engine.options.max_model_len=16384")
    answer = run("show", "bench/v2", "--recipes", recipes, *words)
    expected = RESOLVED.replace("lane: bench\nrelease: v2", "lane: other\nrelease: v1")
    expected = expected.replace("A bench", "Draft from v2").replace("8192", "16384")
    assert (answer.code, answer.out) == (0, expected)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--as", "other/v1"), "--as other/v1: bench/v2 belongs to another lane"),
        (("--as", "v2"), "--as v2: that is the release itself"),
        (("--as", "V 3"), "--as V 3: use lower-case letters, digits, `.`, `-` and `_`"),
        (("--as", "/v3"), "--as /v3: use lower-case letters, digits, `.`, `-` and `_`"),
        (("--copy",), "--copy needs a name for the copy"),
        (("--as", "v3", "--set", "title=x"), "--set cannot be written into a child"),
    ],
)
def test_what_no_release_can_begin_with(recipes: Path, words: tuple[str, ...], message: str) -> None:
    answer = run("show", "bench/v2", "--recipes", recipes, *words)
    assert (answer.code, answer.out) == (2, "")
    assert f"gb300serve: {message}\n" in answer.err
