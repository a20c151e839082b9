"""Receipts, vital signs and the tuning cache, end to end: every fault that they are there for."""

import json
from pathlib import Path

import pytest

from tests.support.free_port import free_port
from tests.support.program import Program, Result

# A boot that tunes its kernels takes a second.
FAST = ("--on", "sim", "--sim-speed", "4000")


@pytest.fixture
def port() -> tuple[str, str]:
    return ("--set", f"engine.options.port={free_port()}")


def plain(result: Result) -> list[str]:
    """What was said, without the mark of the simulation and the clock."""
    return [line.removeprefix("[simulated]").strip() for line in result.err.splitlines()]


def state(program: Program) -> str:
    (lane,) = program.run("status", "--json").document["lanes"]
    found: str = lane["state"]
    return found


def test_v14_keeps_all_its_receipts(program: Program, port: tuple[str, str]) -> None:
    up = program.up_until_ready("v14", *FAST, *port)
    assert "receipts: 4 of 4 kept" in plain(up)
    kept = program.run("receipts", "--json")
    assert (kept.code, kept.document["verdict"]) == (0, "kept")
    assert {one["state"] for one in kept.document["receipts"]} == {"kept"}


def test_a_lane_that_was_launched_from_a_file(program: Program, port: tuple[str, str], tmp_path: Path) -> None:
    shown = program.run("show", "v14").out.replace("lane: deepseek-v4.1-flash", "lane: own")
    file = tmp_path / "own.yaml"
    file.write_text(shown, encoding="utf-8")
    program.up_until_ready(str(file), *FAST, *port)
    for words in ((), (str(file),)):
        kept = program.run("receipts", *words)
        assert kept.out.splitlines()[-1] == "own/v14+set (dsv41-vllm): 4 of 4 kept"


def test_v15_keeps_those_of_its_patches_too(program: Program, port: tuple[str, str]) -> None:
    up = program.up_until_ready("v15", *FAST, *port)
    assert "receipts: 9 of 9 kept" in plain(up)
    kinds = [one["kind"] for one in program.run("receipts", "v15", "--json").document["receipts"]]
    assert kinds == ["line"] * 4 + ["arguments"] + ["patch"] * 4


def test_a_hook_that_is_not_there_fails_by_name(program: Program, port: tuple[str, str]) -> None:
    up = program.run("up", "v15", *FAST, *port, "--sim-fault", "hook-failed")
    assert up.code == 8
    said = plain(up)
    at = said.index("gb300serve: it serves, but not as the recipe describes")
    assert said[at + 1 : at + 5] == [
        "different: Available KV cache memory: {value} GiB (expected 4.75 ± 0.03, found 4.87)",
        "missing: PIN_HOT rehome done layers={value}  (expected 40)",
        "missing: HBM_expert={value}GiB (expected 206.61)",
        said[at + 4],
    ]
    assert said[at + 4].startswith("3 receipts missing, ")
    (lane,) = program.run("status", "--json").document["lanes"]
    assert (lane["state"], lane["container"].startswith("dsv41-vllm-failed-")) == ("failed", True)


@pytest.mark.parametrize(
    ("release", "fault", "sentence"),
    [
        ("v14", "argument-lost",
         "different: engine argument long_prefill_token_threshold (expected 6144, found not in the echo)"),
        ("v14", "cache-miss", "missing: Loaded {value} configs (expected 210)"),
        ("v14", "cache-foreign", "missing: Loaded {value} configs (expected 210)"),
        ("v15", "patch-differs", "different: sha256 of /w/pin_hot_experts_hook.py in the container (expected 723066dd"),
    ],
)  # fmt: skip
def test_what_serves_otherwise_than_it_should_is_degraded_and_keeps_running(
    program: Program, port: tuple[str, str], release: str, fault: str, sentence: str
) -> None:
    up = program.run("up", release, *FAST, *port, "--sim-fault", fault)
    assert up.code == 9, up.err
    (degraded,) = [line for line in plain(up) if line.startswith("gb300serve: DEGRADED")]
    assert degraded == (
        "gb300serve: DEGRADED: dsv41-vllm serves, but its boot does not match the receipts of a good boot"
    )
    assert any(line.startswith(sentence) for line in plain(up))
    assert state(program) == "degraded"
    kept = program.run("receipts")
    assert kept.code == 9
    again = program.run("up", release, *FAST, *port)
    assert (again.code, "runs already as dsv41-vllm, but serves wrongly" in again.err) == (9, True), again.err
    assert any(line.startswith(sentence) for line in kept.out.splitlines())


def test_a_launch_that_set_changed_is_told_and_not_judged(program: Program, port: tuple[str, str]) -> None:
    up = program.up_until_ready("v14", *FAST, *port, "--set", "engine.options.cpu_offload_gb=70")
    assert "different: Total CPU offloaded parameters: {value} (expected 61.17 ± 0.01, found 73.83)" in plain(up)
    assert "--set changed this launch: receipts of changed lines do not count" in plain(up)
    assert up.code == 130


def test_a_miss_is_announced_with_its_price_before_it_is_paid(program: Program, port: tuple[str, str]) -> None:
    up = program.run("up", "v14", *FAST, *port, "--sim-fault", "cache-miss")
    said = plain(up)
    (miss,) = [at for at, line in enumerate(said) if line.endswith("tuning takes 74 to 80 minutes")]
    ended = next(at for at, line in enumerate(said) if "capturing-graphs  (expected" in line)
    assert miss < ended
    assert said[miss + 2] == "or stop it: gb300serve down v14 --on sim"


def test_a_seeded_set_is_loaded(program: Program, port: tuple[str, str]) -> None:
    assert program.run("cache", "verify", "v14", "--on", "sim").code == 0
    (path,) = (program.home / ".local" / "state").rglob("9ac7b387*/autotune_configs.json")
    assert program.run("cache", "pin", "v14", "--on", "sim").code == 0
    kept = path.read_bytes()
    path.unlink()
    assert program.run("cache", "verify", "v14", "--on", "sim").code == 6
    assert program.run("cache", "seed", "v14", "--on", "sim").code == 0
    up = program.up_until_ready("v14", *FAST, *port)
    assert any(line.endswith("tuning cache loaded: 210 configurations") for line in plain(up))
    assert program.run("cache", "verify", "v14", "--on", "sim").code == 0
    assert path.read_bytes() == kept


@pytest.mark.parametrize("fault", ["stall", "tuning-hangs"])
def test_a_boot_that_hangs_is_called_stuck_and_its_stack_is_shown(
    program: Program, port: tuple[str, str], fault: str
) -> None:
    up = program.run("up", "v14", "--on", "sim", "--sim-speed", "1000", *port, "--sim-fault", fault, "--stack-dump")
    assert up.code == 8
    said = plain(up)
    (stuck,) = [at for at, line in enumerate(said) if " stuck (nothing new in the log for " in line]
    assert "no CPU time used, GPU idle); waiting for " in said[stuck]
    assert said[stuck + 1].startswith("print its stack: docker exec ")
    assert 'Thread 364 (idle): "MainThread"' in said[stuck:]


def test_a_slow_disk_is_slow_and_not_stuck(program: Program, port: tuple[str, str]) -> None:
    up = program.up_until_ready("v14", "--on", "sim", "--sim-speed", "1000", *port, "--sim-fault", "slow-disk")
    said = plain(up)
    assert any(" slow (" in line and line.endswith("waiting for weights from the disk") for line in said)
    assert not any(" stuck " in line for line in said)


def up(program: Program, port: tuple[str, str], *sets: str) -> Result:
    return program.up_until_ready("v14", *FAST, *port, *(word for each in sets for word in ("--set", each)))


def verdict(program: Program) -> dict[str, object]:
    (path,) = (program.home / ".local/state/gb300serve/runs").glob("*/run.json")
    found: dict[str, object] = json.loads(path.read_text())["verdict"]
    return found


def test_the_set_of_the_recipe_is_there(program: Program, port: tuple[str, str]) -> None:
    served = up(program, port)
    assert "tuning cache: 9ac7b387 as expected, 210 configurations" in served.err.splitlines()
    assert (verdict(program)["receipts"], verdict(program)["tuning"]) == ("kept", "ready")


def test_another_set_is_said_and_degrades_only_where_the_recipe_says_so(
    program: Program, port: tuple[str, str]
) -> None:
    wanted = "boot.tuning_cache.configs=300"
    remark = "210 configurations, the recipe expects 300: the boot will tune the rest"
    served = up(program, port, wanted)
    assert (served.code, verdict(program)["tuning"]) == (130, "differs")
    assert f"tuning cache, for the next boot: {remark}" in served.err.splitlines()
    program.run("down", "--on", "sim", "--remove")
    refused = up(program, port, wanted, "boot.+tuning_cache={missing: degrade}")
    assert refused.code == 9, refused.err
    assert "DEGRADED: dsv41-vllm serves, but its tuning set differs from the recipe" in refused.err
    assert f"  {remark}" in refused.err
