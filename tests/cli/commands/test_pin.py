from pathlib import Path

import pytest

from tests.support.invoke import run
from tests.support.recipes import alone, container, write

COMMAND = "docker run -d \\\n  vllm/vllm-openai:v0.33.0 \\\n  --model /model\n"


@pytest.fixture
def pin(recipes: Path) -> Path:
    write(recipes, {"v1": alone()})
    assert run("pin", "bench/v1", "--recipes", recipes).code == 0
    return recipes / "bench" / "v1.command"


def test_the_command_alone(pin: Path) -> None:
    assert pin.read_text() == COMMAND


def test_what_is_pinned_already(pin: Path, recipes: Path) -> None:
    answer = run("pin", "bench/v1", "--recipes", recipes)
    assert (answer.code, answer.out, answer.err) == (0, "", f"bench/v1 is pinned already: {pin}\n")


def test_a_pinned_release_does_not_change_by_itself(pin: Path, recipes: Path) -> None:
    write(recipes, {"v1": alone().replace("v0.33.0}", "v0.33.1}")})
    answer = run("pin", "bench/v1", "--recipes", recipes)
    assert (answer.code, pin.read_text()) == (5, COMMAND)
    assert answer.err.splitlines()[0] == (
        "gb300serve: bench/v1 is pinned to another command "
        "(removes vllm/vllm-openai:v0.33.0; adds vllm/vllm-openai:v0.33.1)"
    )
    assert "put the change into a new release that extends it" in answer.err
    assert "only if nobody has launched it" in answer.err
    assert "PIN001" in run("lint", "bench/v1", "--recipes", recipes).out
    assert run("pin", "bench/v1", "--recipes", recipes, "--force").code == 0
    assert pin.read_text() == COMMAND.replace("0.33.0", "0.33.1")


def test_a_pin_of_other_blanks_is_written_anew(pin: Path, recipes: Path) -> None:
    pin.write_text(COMMAND.replace(" \\\n ", ""))
    assert run("pin", "bench/v1", "--recipes", recipes).code == 0
    assert pin.read_text() == COMMAND


def test_a_pin_that_no_shell_reads_differs(pin: Path, recipes: Path) -> None:
    pin.write_text("docker run 'open\n")
    assert run("pin", "bench/v1", "--recipes", recipes).code == 5


def test_the_reference_site_compiles_pins(recipes: Path, tmp_path: Path) -> None:
    write(recipes, {"v1": container('mounts: [{source: "${cache}", target: /c}]')})
    site = tmp_path / "own.yaml"
    site.write_text("format: gb300serve.site/1\ncache: /mine\n")
    variables = {"GB300SERVE_SITE": str(site), "GB300SERVE_RECIPES": str(recipes)}
    assert run("pin", "bench/v1", variables=variables).code == 0
    assert "-v /cache:/c" in (recipes / "bench" / "v1.command").read_text()
    assert "-v /mine:/c" in run("compile", "bench/v1", variables=variables).out
    assert "PIN001" not in run("lint", "bench/v1", variables=variables).out


def test_all_or_none(recipes: Path) -> None:
    assert run("pin", "bench/v1", "bench/v9", "--recipes", recipes).code == 2
    assert list(recipes.glob("*/*.command")) == []
    assert run("pin", "bench/v1", "bench/v2", "--recipes", recipes).code == 0
    assert sorted(path.name for path in recipes.glob("*/*.command")) == ["v1.command", "v2.command"]


@pytest.mark.parametrize(("text", "code"), [("title: x\n", 3), (container("gpus: {name: RTX}"), 4)])
def test_what_cannot_be_pinned(recipes: Path, text: str, code: int) -> None:
    write(recipes, {"v1": text})
    assert run("pin", "bench/v1", "--recipes", recipes).code == code
    assert list(recipes.glob("*/*.command")) == []


def test_a_pin_that_cannot_be_written(recipes: Path) -> None:
    path = recipes / "bench" / "v1.command"
    path.mkdir()
    answer = run("pin", "bench/v1", "--recipes", recipes)
    assert (answer.code, answer.err.splitlines()[0]) == (6, f"gb300serve: {path}: Is a directory")


def test_secrets_are_not_part_of_a_pin(recipes: Path) -> None:
    write(recipes, {"v1": container("secrets: {K: {env: K}}")})
    assert run("pin", "bench/v1", "--recipes", recipes).code == 0
    assert (recipes / "bench" / "v1.command").read_text().startswith("docker run -d \\\n  -e K \\\n")
    assert run("compile", "bench/v1", "--recipes", recipes).out.startswith(': "${K:?')
    assert "PIN001" not in run("lint", "bench/v1", "--recipes", recipes).out
