from pathlib import Path

import pytest

from tests.support.golden import Golden
from tests.support.invoke import run
from tests.support.recipes import EVERYTHING, container, write

SHIPPED = Path(__file__).parents[3] / "recipes"
RELEASES = sorted(f"{path.parent.name}/{path.stem}" for path in SHIPPED.glob("*/*.yaml"))
TARGETS = {"compose": "compose.yaml", "quadlet": "container", "kubernetes": "kubernetes.yaml"}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("ref", RELEASES)
def test_every_shipped_release_for_every_target(ref: str, target: str, golden: Golden) -> None:
    answer = run("compile", ref, "--to", target, "--recipes", SHIPPED)
    assert answer.code == 0
    golden(f"targets/{ref.replace('/', '-')}.{TARGETS[target]}", answer.out)


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_target_does_not_say_is_said_beside_it(recipes: Path, target: str, golden: Golden) -> None:
    write(recipes, {"v1": EVERYTHING})
    answer = run("compile", "bench/v1", "--recipes", recipes, "--to", target)
    assert answer.code == 0
    golden(f"targets/everything.{target}.err", answer.err.replace(str(recipes), "RECIPES"))


@pytest.mark.parametrize("target", TARGETS)
def test_with_json_it_stays_the_plan_and_has_the_diagnostics(recipes: Path, target: str) -> None:
    write(recipes, {"v1": EVERYTHING})
    words = ("compile", "bench/v1", "--recipes", recipes)
    plain, found = run(*words, "--json").document, run(*words, "--to", target, "--json").document
    said = found.pop("diagnostics")
    assert plain.pop("diagnostics") == []
    assert found == plain
    assert {"TGT001", "TGT002", "TGT003"} >= {one["code"] for one in said} != set()
    assert all(one["file"] and one["line"] and one["path"] for one in said)


@pytest.mark.parametrize("target", TARGETS)
def test_the_values_of_secrets_are_nowhere(recipes: Path, tmp_path: Path, target: str) -> None:
    key = tmp_path / "key"
    key.write_text("correct horse")
    write(recipes, {"v1": EVERYTHING.replace("{file: /l}", f"{{file: {key}}}")})
    answer = run("compile", "bench/v1", "--recipes", recipes, "--to", target, variables={"K": "hunter2"})
    assert answer.code == 0
    assert "hunter2" not in answer.out + answer.err
    assert "correct horse" not in answer.out + answer.err


def test_an_assignment_and_the_tag(recipes: Path) -> None:
    write(recipes, {"v1": EVERYTHING})
    words = ("--set", "container.name=other", "--image-ref", "tag", "--to", "compose")
    answer = run("compile", "bench/v1", "--recipes", recipes, *words)
    assert answer.out.startswith("# bench/v1+set as a compose file")
    assert "    image: a/b:c\n    container_name: other\n" in answer.out


@pytest.mark.parametrize(("boot", "seconds"), [
    ("boot: {total: {seconds: 100, basis: a}, phases: {starting: {seconds: 21, basis: a}}}\n", 5500),
    ("boot: {phases: {starting: {seconds: 21, basis: a}, serving: {seconds: 16.5, basis: a}}}\n", 5438),
    ("", 7200),
])  # fmt: skip
def test_patience_is_the_recipes(recipes: Path, boot: str, seconds: int) -> None:
    write(recipes, {"v1": container("name: bench") + boot})
    answer = run("compile", "bench/v1", "--recipes", recipes, "--to", "compose")
    assert f"start_period: {seconds}s\n" in answer.out


def test_an_unknown_target_is_a_wrong_command_line(recipes: Path) -> None:
    assert run("compile", "bench/v1", "--recipes", recipes, "--to", "swarm").code == 2
