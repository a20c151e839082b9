"""The rules of the house that no linter checks: names of classes and modules, sizes of files and functions."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import gb300serve

PACKAGE = Path(gb300serve.__file__).parent
TEXTS = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
NODES = {path: tuple(ast.walk(ast.parse(text))) for path, text in TEXTS.items()}

# Kernel tuning, a spelling and a missing fact are terms of the field.
NOUNS = frozenset({"missing", "spelling", "tuning"})
# Modules that the merge of the packages replaces. `strict`: one that is gone must leave its list.
IN_CLI = (
    "cli/asking.py", "cli/caching.py", "cli/diagnosing.py", "cli/diffing.py", "cli/doctoring.py", "cli/expecting.py",
    "cli/fitting.py", "cli/hiding.py", "cli/importing.py", "cli/keeping.py", "cli/launching.py", "cli/linting.py",
    "cli/receipting.py", "cli/rehearsing.py", "cli/returning.py", "cli/seeding.py", "cli/targeting.py",
)  # fmt: skip
ELSEWHERE = (
    "boot/learning.py", "boot/signals/telling.py", "fit/reading.py", "lifecycle/following.py", "lifecycle/serving.py",
    "lint/fitting.py",
)  # fmt: skip


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def is_gerund(path: Path) -> bool:
    """Of the last word: `engine_tuning` names a tuning, `caching_errors` names errors."""
    word = path.stem.rpartition("_")[2]
    return re.search(r"[a-z]{2}ing$", word) is not None and word not in NOUNS


GERUNDS = frozenset(place(path) for path in TEXTS if is_gerund(path))


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=reason))
        for names, reason in ((IN_CLI, "becomes a use case of app"), (ELSEWHERE, "is merged into its neighbour"))
        for name in names
    ],
)
def test_a_module_that_still_has_a_gerund_as_its_name(module: str) -> None:
    assert module not in GERUNDS


def test_no_other_module_has_a_gerund_as_its_name() -> None:
    assert sorted(GERUNDS - {*IN_CLI, *ELSEWHERE}) == []


def test_class_names_are_unique() -> None:
    places = defaultdict(list)
    for path, nodes in NODES.items():
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(place(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_files_are_at_most_500_lines() -> None:
    assert [place(path) for path, text in TEXTS.items() if text.count("\n") > 500] == []


def test_functions_are_at_most_50_lines() -> None:
    longer = [
        f"{place(path)}: {node.name}"
        for path, nodes in NODES.items()
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.end_lineno or 0) - node.lineno >= 50
    ]
    assert longer == []
