from pathlib import Path

import pytest

from tests.support.golden import Golden
from tests.support.invoke import run
from tests.support.recipes import child, write


def test_text(recipes: Path) -> None:
    answer = run("diff", "bench/v1", "bench/v2", "--recipes", recipes)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == (
        "engine.options.max_model_len: 4096 → 8192  (other engine arguments)\n"
        "command:\n  - 4096\n  + 8192\n"
        'record:\n  release: "v1" → "v2"\n'
        "a restart is needed\n"
    )


def test_json(recipes: Path, golden: Golden) -> None:
    golden("diff.json", run("diff", "bench/v1", "bench/v2", "--recipes", recipes, "--json").out)


def test_no_difference(recipes: Path) -> None:
    answer = run("diff", "bench/v1", "bench/v1", "--recipes", recipes, "--exit-code")
    assert (answer.code, answer.out) == (0, "no difference\n")


def test_the_exit_code(recipes: Path) -> None:
    assert run("diff", "bench/v1", "bench/v2", "--recipes", recipes).code == 0
    assert run("diff", "bench/v1", "bench/v2", "--recipes", recipes, "--exit-code").code == 5
    assert run("diff", "bench/v1", "bench/v2", "--recipes", recipes, "--exit-code", "--json").code == 5


def test_a_change_of_the_record_alone(recipes: Path) -> None:
    write(recipes, {"v3": child("limits: [slow]\n", "v3", "v2")})
    answer = run("diff", "bench/v2", "bench/v3", "--recipes", recipes)
    assert answer.out == (
        'record:\n  release: "v2" → "v3"\n  limits: absent → ["slow"]\nthe launch is the same: no restart\n'
    )


def test_an_assignment_changes_the_second(recipes: Path) -> None:
    words = ("--set", "engine.options.gpu_memory_utilization=0.9", "--recipes", recipes, "--json")
    document = run("diff", "bench/v1", "bench/v1", *words).document
    assert document["command"] == {"added": ["0.9"], "removed": ["0.90"]}
    assert [change["path"] for change in document["changes"]] == ["engine.options.gpu_memory_utilization"]
    assert '"before": 0.90,' in run("diff", "bench/v1", "bench/v1", *words).out


def test_the_record(recipes: Path) -> None:
    more = (
        "boot: {total: {seconds: 1, basis: b}}\nmemory: {overhead_gib: 1.5}\nlimits: [a]\n"
        "probes: [{name: a, prompt: b}]\n"
        "evidence: [{figure: f, value: 1, unit: u, workload: w, method: m}]\nlint: {ignore: {A: b}}\n"
    )
    write(recipes, {"v3": child(more, "v3", "v2").replace("status: draft", "status: verified")})
    document = run("diff", "bench/v2", "bench/v3", "--recipes", recipes, "--json").document
    assert (document["changes"], document["command"]) == ([], {"added": [], "removed": []})
    assert [change["path"] for change in document["record"]] == [
        "release", "status", "boot.total.seconds", "boot.total.basis", "memory.overhead_gib", "limits", "probes",
        "evidence", "lint.ignore.A",
    ]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "code"), [("v9", "v1", 2), ("v1", "v9", 2)])
def test_a_release_that_is_not_there(recipes: Path, before: str, after: str, code: int) -> None:
    assert run("diff", f"bench/{before}", f"bench/{after}", "--recipes", recipes).code == code
