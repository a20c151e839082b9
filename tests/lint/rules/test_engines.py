"""What one engine does is not said of the other: every rule's own offending recipes, under the other engine's name."""

from importlib import import_module
from pathlib import Path

import pytest

from gb300serve.lint.run import RULES, findings
from gb300serve.lint.subject import LintSubject
from gb300serve.recipe.catalog import Catalog
from gb300serve.recipe.load import RecipeLoader
from tests.lint.samples import BASES, Case, changed

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py") if path.stem != "test_engines")
CASES: list[Case] = [
    case for name in MODULES for case in getattr(import_module(f"tests.lint.rules.{name}"), "CASES", ()) if case.bad
]
OF_ONE = [case for case in CASES if RULES[case.code].engine]


def codes(path: Path, text: str) -> set[str]:
    """The codes of every rule that finds something, with options that the engine does not have left as they are."""
    path.write_text(text, encoding="utf-8")
    loaded = RecipeLoader(Catalog(())).load_file(Catalog(()).at(path))
    assert loaded.recipe is not None
    return {one.code for one in findings(LintSubject(loaded, loaded.recipe))}


@pytest.mark.parametrize("case", OF_ONE, ids=lambda case: case.code)
def test_silent_under_the_other_engine(tmp_path: Path, case: Case) -> None:
    text = changed(BASES[case.base], case.bad)
    mine = RULES[case.code].engine
    other = "sglang" if mine == "vllm" else "vllm"
    assert case.code in codes(tmp_path / "recipe.yaml", text)
    assert case.code not in codes(tmp_path / "recipe.yaml", changed(text, {f"  name: {mine}\n": f"  name: {other}\n"}))


def test_most_rules_of_vllm_are_among_them() -> None:
    of_vllm = {rule.code for rule in RULES if rule.engine == "vllm"}
    assert len(of_vllm) > 35
    assert of_vllm - {case.code for case in OF_ONE} <= {"REC001"}
