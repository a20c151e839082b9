"""`probe` end to end on the simulated Station."""

from pathlib import Path

import pytest

from tests.e2e.simulated.test_sglang import recipe
from tests.support.program import Program

FAST = ("--on", "sim", "--sim-speed", "800")
STANDARD = [
    "models", "arithmetic", "counting", "tool-call", "thinking-on", "thinking-off", "streaming", "structured-output",
    "batch",
]  # fmt: skip


def test_right_answers_of_vllm(program: Program, port: int) -> None:
    assert program.up_until_ready("v14", *FAST, "--set", f"engine.options.port={port}").code == 130
    found = program.run("probe", "--json")
    assert (found.code, found.document["failed"]) == (0, 0)
    assert [probe["name"] for probe in found.document["probes"]] == STANDARD
    short = program.run("probe", "v14", "--short")
    assert (short.code, short.out.splitlines()[-1]) == (0, "5 of 5 passed")
    unknown = program.run("probe", "--only", "aritmetic")
    assert (unknown.code, "did you mean arithmetic?" in unknown.err) == (2, True)


def test_right_answers_of_sglang(program: Program, tmp_path: Path) -> None:
    program.up_until_ready(recipe(tmp_path), *FAST)
    found = program.run("probe", "--json")
    assert (found.code, found.document["failed"], found.document["model"]) == (0, 0, "glm-5.3-flash")


@pytest.mark.parametrize(
    ("options", "name", "meaning"),
    [
        (("tool_call_parser=null", "enable_auto_tool_choice=null"), "tool-call", "the launch has no tool parser"),
        (("reasoning_parser=null",), "thinking-on", "set engine.options.reasoning_parser"),
    ],
)
def test_a_missing_parser_is_named(
    program: Program, port: int, options: tuple[str, ...], name: str, meaning: str
) -> None:
    sets = [f"engine.options.port={port}", *(f"engine.options.{option}" for option in options)]
    program.up_until_ready("v14", *FAST, *(word for each in sets for word in ("--set", each)))
    found = program.run("probe", "--json", "--only", name)
    (probe,) = [probe for probe in found.document["probes"] if probe["name"] == name]
    assert (found.code, probe["outcome"], meaning in probe["meaning"]) == (9, "failed", True), probe


def test_up_probes_when_the_recipe_asks_for_it(program: Program, port: int) -> None:
    sets = [f"engine.options.port={port}", "boot.probes=short"]
    good = program.up_until_ready("v14", *FAST, *(word for each in sets for word in ("--set", each)))
    assert "probe: tool-call passed" in good.err
    program.run("down", "--remove")
    sets += ["engine.options.tool_call_parser=null", "engine.options.enable_auto_tool_choice=null"]
    wrong = program.run("up", "v14", *FAST, *(word for each in sets for word in ("--set", each)))
    assert (wrong.code, "DEGRADED: dsv41-vllm serves, but its model answers wrongly" in wrong.err) == (9, True)


def test_no_lane(program: Program) -> None:
    assert program.run("probe", "--on", "sim").code == 6
