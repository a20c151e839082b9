"""`runs`: what is kept of launches, and what may go."""

from typing import Any

from tests.support.program import Program

FAST = ("--on", "sim", "--sim-speed", "2000", "--wait")


def runs(program: Program, *words: str) -> list[dict[str, Any]]:
    found = program.run("runs", *words, "--json")
    assert found.code == 0, found.err
    shown: list[dict[str, Any]] = found.document["runs"]
    return shown


def test_prune_keeps_the_way_back_and_what_runs(program: Program, port: int) -> None:
    on_port = ("--set", f"engine.options.port={port}")
    assert runs(program) == []
    for release in ("v13", "v14", "v13"):
        assert program.run("up", release, *FAST, *on_port, "--replace").code == 0
    assert program.run("up", "v14", *FAST, *on_port, "--replace", "--sim-fault", "gpu-oom").code == 8
    assert [(run["release"], run["state"], run["needed"]) for run in runs(program)] == [
        ("deepseek-v4.1-flash/v13+set", "ready", None),
        ("deepseek-v4.1-flash/v14+set", "ready", "rollback returns to it"),
        ("deepseek-v4.1-flash/v13+set", "ready", "its container runs"),
        ("deepseek-v4.1-flash/v14+set", "failed", None),
    ]
    assert program.run("runs", "prune").code == 2
    going = runs(program, "prune", "--count", "0")
    assert [run["release"] for run in going] == ["deepseek-v4.1-flash/v13+set", "deepseek-v4.1-flash/v14+set"]
    assert going[1]["failed_container"].startswith("dsv41-vllm-failed-")
    assert len(runs(program)) == 4
    assert len(runs(program, "prune", "--days", "1")) == 0
    assert len(runs(program, "prune", "--count", "3")) == 1
    assert len(runs(program, "prune", "--size", "0", "--yes")) == 2
    assert [run["needed"] for run in runs(program)] == ["rollback returns to it", "its container runs"]
    names = [lane["container"] for lane in program.run("status", "--json").document["lanes"]]
    assert going[1]["failed_container"] not in names
    assert program.run("rollback", *FAST[:4]).code in {0, 130}
    assert "no runs" not in program.run("runs").out
