"""After READY the tuning set is looked at: on the simulated Station, where boots write real files."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gb300serve.autotune.sets import TuningSet
from gb300serve.autotune.verify import Verified
from gb300serve.cli.tuned import tuning_lines
from tests.support.free_port import free_port
from tests.support.program import Program, Result

STATE = ".local/state/gb300serve"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    found = Program(tmp_path)
    yield found
    found.run("down", "--on", "sim", "--timeout", "1")


def up(program: Program, *sets: str) -> Result:
    words = [word for each in (f"engine.options.port={free_port()}", *sets) for word in ("--set", each)]
    return program.up_until_ready("v14", "--on", "sim", "--sim-speed", "800", *words)


def verdict(program: Program) -> dict[str, object]:
    (path,) = (program.home / STATE / "runs").glob("*/run.json")
    found: dict[str, object] = json.loads(path.read_text())["verdict"]
    return found


def test_the_set_of_the_recipe_is_there(program: Program) -> None:
    served = up(program)
    assert "tuning cache: 9ac7b387 as expected, 210 configurations" in served.err.splitlines()
    assert (verdict(program)["receipts"], verdict(program)["tuning"]) == ("kept", "ready")


def test_another_set_is_said_and_degrades_only_where_the_recipe_says_so(program: Program) -> None:
    wanted = "boot.tuning_cache.configs=300"
    remark = "210 configurations, the recipe expects 300: the rest will be tuned"
    served = up(program, wanted)
    assert (served.code, verdict(program)["tuning"]) == (130, "differs")
    assert f"tuning cache, for the next boot: {remark}" in served.err.splitlines()
    program.run("down", "--on", "sim", "--remove")
    refused = up(program, wanted, "boot.+tuning_cache={missing: degrade}")
    assert refused.code == 9, refused.err
    assert "DEGRADED: dsv41-vllm serves, but its tuning set is not the one of its recipe" in refused.err
    assert f"  {remark}" in refused.err


FOUND = TuningSet("0.6.18", "103a", "9ac7b387" * 8, "autotune_configs.json")


@pytest.mark.parametrize(
    ("verified", "lines"),
    [
        (Verified("unknown", ("/c/x belongs to another user",), FOUND), [("/c/x belongs to another user", "dim")]),
        (Verified("missing", ("no set 9ac7b387 is there",)), [("no set 9ac7b387 is there", "warning")]),
    ],
)
def test_what_is_said(verified: Verified, lines: list[tuple[str, str]]) -> None:
    wanted = [(f"tuning cache, for the next boot: {text}", style) for text, style in lines]
    assert list(tuning_lines(verified)) == wanted
