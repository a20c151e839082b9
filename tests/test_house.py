"""The rules of the house that no linter checks: names of classes and modules, sizes of files and functions."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import gb300serve

PACKAGE = Path(gb300serve.__file__).parent
TEXTS = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
NODES = {path: tuple(ast.walk(ast.parse(text))) for path, text in TEXTS.items()}

# Kernel tuning is a term of the field.
NOUNS = frozenset({"tuning"})


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def is_gerund(path: Path) -> bool:
    """Of the last word: `engine_tuning` names a tuning, `caching_errors` names errors."""
    word = path.stem.rpartition("_")[2]
    return re.search(r"[a-z]{2}ing$", word) is not None and word not in NOUNS


def test_no_module_has_a_gerund_as_its_name() -> None:
    assert [place(path) for path in TEXTS if is_gerund(path)] == []


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


def test_what_a_module_keeps_to_itself_is_used_in_it() -> None:
    """vulture takes a private name for used if another module has one of the same name."""
    unused = [
        f"{place(path)}: {name}"
        for path, text in TEXTS.items()
        for name in re.findall(r"^(?:def |class )?(_[A-Za-z]\w*)\b(?:[(:]| = |$)", text, re.MULTILINE)
        if len(re.findall(rf"\b{name}\b", text)) == 1
    ]
    assert unused == []
