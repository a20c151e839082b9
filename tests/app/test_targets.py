from pathlib import Path

from gb300serve.app.targets import TARGETS, gap_diagnostic, render_target, service_of
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.render.target import OMITTED, Gap, TargetService
from tests.plan.test_compile import compiled
from tests.support.recipes import EVERYTHING, load, write


def test_the_recipes_numbers(tmp_path: Path) -> None:
    recipe = load(write(tmp_path, {"v1": EVERYTHING}), "v1").recipe
    assert recipe is not None
    assert service_of(recipe) == TargetService(8000, 454.5)


def test_a_gap_points_at_its_place(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, {"v1": EVERYTHING}), "v1")
    gap = Gap(OMITTED, ("container", "ulimits"), "a", "b")
    assert gap_diagnostic(gap, loaded) == Diagnostic(
        "TGT001", "not-in-target", "warning", "a", "b", str(tmp_path / "bench" / "v1.yaml"), 15, 12, "container.ulimits"
    )


def test_a_file_and_its_gaps(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, {"v1": EVERYTHING}), "v1")
    assert loaded.recipe is not None
    text, found = render_target("compose", compiled(tmp_path, EVERYTHING), loaded, loaded.recipe)
    assert text == (Path(__file__).parents[1] / "render/golden/everything.compose.yaml").read_text(encoding="utf-8")
    assert [one.code for one in found] == ["TGT001", "TGT001", "TGT002", "TGT002", "TGT003"]


def test_the_names_of_the_targets() -> None:
    assert sorted(TARGETS) == ["compose", "kubernetes", "quadlet"]
