"""Every code has one name, one usual severity and one text: `rules CODE` prints what a finding carries."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gb300serve
from gb300serve.core.diagnostics import CATALOGUE, diagnostic
from gb300serve.lint.run import RULES
from gb300serve.preflight.run import CHECKS
from tests.support.invoke import run

PACKAGE = Path(gb300serve.__file__).parent
DECLARED = PACKAGE / "core" / "diagnostics.py"
REASONS = PACKAGE / "boot" / "reasons.py"
CODE = re.compile(r"[A-Z]{2,5}\d{3}")
BOOKS = {rule.code: rule for book in (RULES, CHECKS) for rule in book}
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}


def texts(path: Path) -> Iterator[str]:
    return (
        node.value for node in ast.walk(TREES[path]) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def families() -> frozenset[str]:
    return frozenset(code[:-3] for code in (*CATALOGUE, *BOOKS))


def test_a_code_is_declared_once() -> None:
    assert sorted(CATALOGUE.keys() & BOOKS.keys()) == []
    assert [entry.code for entry in CATALOGUE.values()] == list(CATALOGUE)
    names = [entry.name for entry in CATALOGUE.values() if not entry.code.startswith("IMP")]
    assert len(set(names)) == len(names)


def test_every_code_in_the_source_is_declared() -> None:
    written = {text for path in TREES for text in texts(path) if CODE.fullmatch(text) and text[:-3] in families()}
    assert sorted(written - CATALOGUE.keys() - BOOKS.keys()) == []


def test_names_are_written_in_the_catalogue_only() -> None:
    """Names of one word (`cycle`) mean other things too, and reasons of a failed boot have names of their own."""
    names = {entry.name for entry in CATALOGUE.values() if "-" in entry.name}
    elsewhere = {
        (path.relative_to(PACKAGE).as_posix(), text)
        for path in TREES
        if path not in (DECLARED, REASONS)
        for text in texts(path)
        if text in names
    }
    assert elsewhere == set()


def test_findings_are_built_from_the_catalogue_or_a_book() -> None:
    """`Diagnostic(…)` is called where the entry of the catalogue or the rule is at hand, and nowhere else."""
    callers = {
        path.relative_to(PACKAGE).as_posix()
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Diagnostic"
    }
    assert callers == {"core/diagnostics.py", "lint/run.py", "preflight/run.py"}


@pytest.mark.parametrize("code", sorted(CATALOGUE))
def test_rules_prints_what_a_finding_carries(code: str) -> None:
    found = diagnostic(code, "a message")
    assert run("rules", code).out == f"{code} {found.name} ({found.severity})\n\n{CATALOGUE[code].summary}\n"


def test_rules_prints_the_books() -> None:
    printed = {row["code"]: (row["name"], row["severity"]) for row in run("rules", "--json").document["rules"]}
    declared = {code: (entry.name, entry.severity) for code, entry in CATALOGUE.items()}
    assert printed == declared | {code: (rule.name, rule.severity) for code, rule in BOOKS.items()}


def test_a_severity_can_be_overridden() -> None:
    assert diagnostic("FIT005", "a message").severity == "warning"
    assert diagnostic("FIT005", "a message", severity="error").severity == "error"


def test_summaries_are_sentences() -> None:
    assert [entry.code for entry in CATALOGUE.values() if not re.fullmatch(r"[A-Z`+].*\.", entry.summary)] == []
    assert [entry.code for entry in CATALOGUE.values() if len(entry.summary.split()) > 25] == []
