"""A loaded recipe held against the option table of its engine version, and against the variables that its paths name."""

from collections.abc import Iterator
from typing import Any

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.document.nodes import MapNode
from gb300serve.document.nodes import Path as NodePath
from gb300serve.engines.problem import Problem, dotted
from gb300serve.engines.registry import ENGINES
from gb300serve.plan.words import secret_name, with_secret_words
from gb300serve.recipe.load import Loaded

# The option itself is at fault, not its value.
_AT_THE_KEY = frozenset({"OPT001", "OPT005", "OPT009", "OPT013"})


def check(loaded: Loaded) -> tuple[Diagnostic, ...]:
    """Everything that keeps the file from being a recipe, and notes; in the order of the file."""
    found = (*loaded.problems, *_options(loaded), *_secrets(loaded))
    return tuple(sorted(dict.fromkeys(found), key=lambda d: (d.file != loaded.source.name, d.file or "", d.line or 0)))


def _options(loaded: Loaded) -> Iterator[Diagnostic]:
    section = _mapping(loaded.root, "engine")
    options = section.get("options")
    name, version = section.get("name"), section.get("version")
    if not isinstance(options, MapNode) or name not in ENGINES:
        return
    said = {(problem.file, problem.line, problem.column) for problem in loaded.problems}
    for problem in ENGINES[name].check(with_secret_words(options), version if isinstance(version, str) else None):
        diagnostic = _placed(loaded, problem)
        if (diagnostic.file, diagnostic.line, diagnostic.column) not in said:
            yield diagnostic


def _placed(loaded: Loaded, problem: Problem) -> Diagnostic:
    path: NodePath = ("engine", "options", *problem.path)
    if problem.code == "OPT008":
        path = ("engine", "version")
    place = loaded.place(path, of_key=problem.code in _AT_THE_KEY)
    return Diagnostic(
        problem.code,
        problem.name,
        problem.severity,
        problem.message,
        problem.hint,
        *place,
        ".".join(map(str, path)) if problem.code == "OPT008" else dotted(problem.path),
    )


def _secrets(loaded: Loaded) -> Iterator[Diagnostic]:
    """Every `{secret: NAME}` of the options is declared; every declared secret says where its value is."""
    declared = _mapping(_mapping(loaded.root, "container"), "secrets")
    for key, value in _mapping(_mapping(loaded.root, "engine"), "options").items():
        name = secret_name(value)
        if name is not None and name not in declared:
            place = loaded.place(("engine", "options", key))
            message = f"engine.options.{key} speaks of secret {name}, and container.secrets has none of that name"
            hint = f"add `{name}: {{env: {name}}}` to container.secrets"
            yield Diagnostic("SEC001", "undeclared-secret", "error", message, hint, *place, f"engine.options.{key}")
    for name, value in declared.items():
        if isinstance(value, MapNode) and len(value) != 1 and set(value) <= {"env", "file"}:
            place = loaded.place(("container", "secrets", name))
            message = f"container.secrets.{name} must name one source: a variable or a file"
            hint = f"write {{env: {name}}} or {{file: /a/file}}"
            yield Diagnostic("SEC002", "secret-without-source", "error", message, hint, *place, f"container.secrets.{name}")


def _mapping(node: Any, key: str) -> MapNode:
    value = node.get(key) if isinstance(node, MapNode) else None
    return value if isinstance(value, MapNode) else MapNode()
