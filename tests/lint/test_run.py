from pathlib import Path

import pytest

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.lint.run import FAMILIES, RULES, findings, findings_in_any
from gb300serve.lint.subject import LintSubject
from gb300serve.recipe.catalog import Catalog
from gb300serve.recipe.load import RecipeLoader
from tests.lint.samples import BASES, KNOWN, OTHER, changed, lint

HERE = Path(__file__).parent


@pytest.mark.parametrize("base", BASES)
def test_clean_recipes_have_no_finding_at_all(tmp_path: Path, base: str) -> None:
    assert lint(tmp_path, BASES[base]) == []


def test_every_rule_is_tested() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in sorted((HERE / "rules").glob("test_*.py")))
    assert [rule.code for rule in RULES if f'"{rule.code}"' not in tests] == []


def test_every_family_has_its_test() -> None:
    names = [family.__name__.rpartition(".")[2] for family in FAMILIES]
    assert [name for name in names if not (HERE / "rules" / f"test_{name}.py").is_file()] == []


def test_rules_explain_themselves() -> None:
    for rule in RULES:
        assert rule.summary.endswith("."), rule.code
        assert rule.summary.count(". ") == 0, f"{rule.code}: one sentence"
        assert len(rule.why) > 40, rule.code
        assert len(rule.fix) > 10, rule.code


def test_an_ignored_rule_says_nothing(tmp_path: Path) -> None:
    ignored = "status: draft\nlint:\n  ignore:\n    CON003: this machine has one GPU\n"
    assert lint(tmp_path, changed(OTHER, {"{name: GB300}": "{index: [0]}", "status: draft\n": ignored})) == []


def test_idle_unknown_and_unreasoned_ignores(tmp_path: Path) -> None:
    ignored = "status: draft\nlint:\n  ignore:\n    CON003: one GPU here\n    QUI001: never mind\n    CON001: todo\n"
    text = changed(OTHER, {"status: draft\n": ignored, "  ipc: host\n": "  ipc: host\n  restart: always\n"})
    file = str(tmp_path / "recipe.yaml")
    assert lint(tmp_path, text) == [
        Diagnostic(
            "LNT001", "idle-ignore", "warning", "CON003 is ignored, and hides nothing", "remove the line",
            file, 8, 5, "lint.ignore.CON003",
        ),
        Diagnostic(
            "LNT001", "idle-ignore", "warning", "there is no rule QUI001", "`gb300serve rules` lists them",
            file, 9, 5, "lint.ignore.QUI001",
        ),
        Diagnostic(
            "LNT002", "ignore-without-reason", "warning", "CON001 is ignored without a reason: `todo` is none",
            "say why it does not apply here", file, 10, 13, "lint.ignore.CON001",
        ),
    ]  # fmt: skip


def test_what_loading_noticed_can_be_ignored_too(tmp_path: Path) -> None:
    ignored = "status: draft\nlint: {ignore: {OPT008: the build is our own}}\n"
    text = changed(
        OTHER, {"status: draft\n": ignored, "version: 0.32.0": "version: 0.32.7", "tag: v0.32.0": "tag: mine"}
    )
    assert lint(tmp_path, text) == []


def test_findings_stand_in_the_order_of_the_file(tmp_path: Path) -> None:
    changes = {"{name: GB300}": "all", "tag: v0.32.0": "tag: v0.31.0", "port: 8000\n": "port: 8001\n"}
    assert [(d.code, d.line) for d in lint(tmp_path, changed(OTHER, changes))] == [
        ("CON004", 17),
        ("PRT004", 19),
        ("IMG006", 26),
    ]


def test_secrets_are_found_in_files_that_are_no_recipes(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    broken = {"status: draft\n": "status: fine\n", "    VLLM_LOGGING_LEVEL: INFO\n": "    HF_TOKEN: plum-tree\n"}
    path.write_text(changed(OTHER, broken), encoding="utf-8")
    loaded = RecipeLoader(Catalog(())).load_file(Catalog(()).at(path))
    assert loaded.recipe is None
    (found,) = findings_in_any(loaded)
    assert (found.code, found.line, found.path) == ("SEC003", 23, "container.env.HF_TOKEN")


def test_a_finding_of_an_inherited_value_stands_in_the_parent(tmp_path: Path) -> None:
    lane = tmp_path / "garden"
    lane.mkdir()
    (lane / "v1.yaml").write_text(changed(KNOWN, {"{name: GB300}": "all"}), encoding="utf-8")
    child = "format: gb300serve/1\nlane: garden\nrelease: v2\ntitle: Garden\nstatus: draft\nextends: v1\n"
    (lane / "v2.yaml").write_text(child, encoding="utf-8")
    loaded = RecipeLoader(Catalog((tmp_path,))).load_file(Catalog((tmp_path,)).at(lane / "v2.yaml"))
    assert loaded.recipe is not None
    (found,) = findings(LintSubject(loaded, loaded.recipe))
    assert (found.code, found.file, found.line) == ("CON004", str(lane / "v1.yaml"), 17)
