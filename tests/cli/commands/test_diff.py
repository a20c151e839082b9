from pathlib import Path

import pytest

from tests.support.golden import Golden
from tests.support.invoke import run
from tests.support.recipes import child, write


def test_text(recipes: Path) -> None:
    answer = run("diff", "bench/v1", "bench/v2", "--recipes", recipes)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == (
        "engine.options.max_model_len: 4096 → 8192\n"
        "    longest context; tuning cache new: the engine's source and the recorded boots agree\n"
        "command:\n  - --max-model-len 4096\n  + --max-model-len 8192\n"
        'record:\n  release: "v1" → "v2"\n'
        "costs:\n"
        "  restart       needed\n"
        "  tuning cache  new: max_model_len is part of the identity: "
        "the engine's source and the recorded boots agree\n"
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
        'record:\n  release: "v2" → "v3"\n  limits: absent → ["slow"]\n'
        "costs:\n  restart       none: the launch is the same\n"
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


def test_shipped_releases_with_their_costs(golden: Golden) -> None:
    golden("diff-v11-v12.txt", run("diff", "v11", "v12").out)
    golden("diff-v14-v15.md", run("diff", "v14", "v15", "--markdown").out)


def test_the_first_costs_of_the_article() -> None:
    found = run("diff", "v11", "v12", "--json").document["costs"]
    assert (found["restart"], found["autotune"], found["kv_cache_gib"]) == (True, "new", [10.05, 4.89])
    assert round(found["offloaded_gib"][0] - found["offloaded_gib"][1], 2) == 12.66
    found = run("diff", "v13", "v14", "--json").document
    assert [change["path"] for change in found["changes"]] == [
        "engine.options.speculative_config.num_speculative_tokens_per_batch_size"
    ]
    assert (len(found["command"]["added"]), len(found["command"]["removed"])) == (1, 1)
    assert (found["costs"]["autotune"], found["costs"]["boot_seconds"]) == ("same", [456, 454])


@pytest.mark.parametrize(
    ("assignment", "autotune"),
    [
        ("max_num_seqs=24", "new"),
        ("port=30007", "same"),
        ("gpu_memory_utilization=0.96", "same"),
        ("cpu_offload_gb=62", "unknown"),
        ("async_scheduling=true", "unknown"),
        ("speculative_config.num_speculative_tokens_per_batch_size=[[1,3,5],[4,16,1]]", "new"),
        ("speculative_config.num_speculative_tokens_per_batch_size=[[1,2,5],[3,4,3],[5,16,1]]", "same"),
        ("speculative_config.num_speculative_tokens_per_batch_size=[[1,5,5],[6,16,1]]", "unknown"),
    ],
)
def test_the_tuning_cache_of_a_changed_launch(assignment: str, autotune: str) -> None:
    words = ("diff", "v14", "v14", "--set", f"engine.options.{assignment}")
    assert run(*words, "--json").document["costs"]["autotune"] == autotune


def test_what_an_inherited_identity_says_is_not_recorded(tmp_path: Path) -> None:
    lane = "deepseek-v4.1-flash"
    more = "engine: {options: {max_num_seqs: 24}}\n"
    write(tmp_path, {"v16": child(more, "v16", "v14").replace("lane: bench", f"lane: {lane}")}, lane)
    found = run("diff", "v14", f"{lane}/v16", "--recipes", tmp_path, "--json").document["costs"]
    assert (found["autotune"], found["kv_cache_basis"]) == ("new", ["measured", "assumed"])


def test_settings_that_never_booted_are_in_the_ledger() -> None:
    answer = run("diff", "v14", "v14", "--set", "engine.options.cpu_offload_gb=55")
    assert "offload 55 never booted here: 55 left 0.65 GiB of KV cache at 1,048,576 tokens and 0.97" in answer.out
    assert "  fits          refused: one request of 1,048,576 tokens needs 2.20 GiB\n" in answer.out
    ledger = run("diff", "v14", "v14", "--set", "engine.options.cpu_offload_gb=55", "--json").document["costs"][
        "ledger"
    ]
    assert [one["code"] for one in ledger] == ["REC001"]
