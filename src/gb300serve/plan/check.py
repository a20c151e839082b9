"""Check a loaded recipe: engine options against the option table, and references to variables, secrets and phases."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from gb300serve.boot.phases import Phase
from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.core.text import suggestion
from gb300serve.document.nodes import ListNode, MapNode
from gb300serve.document.nodes import Path as NodePath
from gb300serve.engines.base import Problem, dotted
from gb300serve.engines.registry import ENGINES
from gb300serve.plan.compile import VariableError, expand
from gb300serve.plan.model import SECRET, secret_name, with_secret_placeholders
from gb300serve.plan.secrets import redact_diagnostics
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.site import DIRECTORIES

UNKNOWN_KEY = "FMT001"
UNDECLARED = "SEC001"
NO_SOURCE = "SEC002"
UNKNOWN_VARIABLE = "VAR001"

_PHASES = tuple(phase.value for phase in Phase)

# These concern the option, not its value.
_AT_THE_KEY = frozenset({"OPT001", "OPT005", "OPT013"})


def check(loaded: LoadedRecipe) -> tuple[Diagnostic, ...]:
    """All errors and notes of a recipe, in the order of the file."""
    problems = (*loaded.problems, *_options(loaded), *_secrets(loaded), *_variables(loaded), *_phases(loaded))
    ordered = sorted(dict.fromkeys(problems), key=partial(_order, loaded.source.name))
    return redact_diagnostics(ordered, loaded.root)


def _order(own: str, found: Diagnostic) -> tuple[bool, str, int, int]:
    return found.file != own, found.file or "", found.line or 0, found.column or 0


def _options(loaded: LoadedRecipe) -> Iterator[Diagnostic]:
    section = _mapping(loaded.root, "engine")
    options = section.get("options")
    name, version = section.get("name"), section.get("version")
    if not isinstance(options, MapNode) or not isinstance(name, str) or name not in ENGINES:
        return
    reported = {(problem.file, problem.line, problem.column) for problem in loaded.problems}
    for problem in ENGINES[name].check(
        with_secret_placeholders(options), version if isinstance(version, str) else None
    ):
        diagnostic = _placed(loaded, problem)
        if (diagnostic.file, diagnostic.line, diagnostic.column) not in reported:
            yield diagnostic


def _placed(loaded: LoadedRecipe, problem: Problem) -> Diagnostic:
    path: NodePath = ("engine", "options", *problem.path)
    if problem.code == "OPT008":
        path = ("engine", "version")
    place = loaded.place(path, of_key=problem.code in _AT_THE_KEY)
    address = ".".join(map(str, path)) if problem.code == "OPT008" else dotted(problem.path)
    return diagnostic(problem.code, problem.message, problem.hint, place, address, severity=problem.severity)


def _secrets(loaded: LoadedRecipe) -> Iterator[Diagnostic]:
    """Every secret in the engine's arguments is declared, and every declared secret has one source."""
    declared = _mapping(_mapping(loaded.root, "container"), "secrets")
    for path, name in _references(loaded):
        if name not in declared:
            message = f"{_dotted(path)} uses secret {name}, which container.secrets does not declare"
            hint = f"add `{name}: {{env: {name}}}` to container.secrets"
            yield _error(loaded, UNDECLARED, path, message, hint)
    for name, value in declared.items():
        if isinstance(value, MapNode) and len(value) != 1 and set(value) <= {"env", "file"}:
            message = f"container.secrets.{name} requires exactly one source: a variable or a file"
            hint = f"write {{env: {name}}} or {{file: /a/file}}"
            yield _error(loaded, NO_SOURCE, ("container", "secrets", name), message, hint)


def _references(loaded: LoadedRecipe) -> Iterator[tuple[NodePath, str]]:
    """Secrets in the engine's arguments, written as `{secret: NAME}` or `${secret:NAME}`."""
    section = _mapping(loaded.root, "engine")
    for key in ("options", "launcher", "extra_args"):
        arguments = section.get(key)
        if "secret" not in str(arguments):
            continue  # a search in the text takes a fifth of the time
        for path, value in _leaves(arguments, ("engine", key)):
            if type(value) is str:
                if "${secret:" in value:
                    yield from ((path, name) for name in SECRET.findall(value))
            elif (name := secret_name(value)) is not None:
                yield path, name


def _leaves(node: Any, path: NodePath) -> Iterator[tuple[NodePath, Any]]:
    """Single values and `{secret: NAME}`, with their paths."""
    if isinstance(node, MapNode) and secret_name(node) is None:
        for key, value in node.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(node, ListNode):
        for index, value in enumerate(node):
            yield from _leaves(value, (*path, index))
    else:
        yield path, node


def _variables(loaded: LoadedRecipe) -> Iterator[Diagnostic]:
    """Variables that neither a site nor the recipe can define. The compiler reports those that this site lacks."""
    site = dict.fromkeys(DIRECTORIES, "")
    for path, text in _paths(loaded.root):
        try:
            expand(text, site, loaded.root)
        except VariableError as error:
            yield _error(loaded, UNKNOWN_VARIABLE, path, error.message, error.hint)


def _paths(root: Any) -> Iterator[tuple[NodePath, str]]:
    """The texts of the recipe that may contain variables."""
    container = _mapping(root, "container")
    places: list[tuple[NodePath, Any]] = [(("model", "path"), _mapping(root, "model").get("path"))]
    places += ((("models", index, "path"), item.get("path")) for index, item in _items(root, "models"))
    places += (
        (("container", "mounts", index, "source"), item.get("source")) for index, item in _items(container, "mounts")
    )
    secrets = _mapping(container, "secrets")
    places += ((("container", "secrets", name, "file"), _mapping(secrets, name).get("file")) for name in secrets)
    return ((path, text) for path, text in places if isinstance(text, str))


def _phases(loaded: LoadedRecipe) -> Iterator[Diagnostic]:
    """The keys of boot.phases are phases of a boot."""
    for name in _mapping(_mapping(loaded.root, "boot"), "phases"):
        if name not in _PHASES:
            meant = suggestion(name, _PHASES)
            hint = f"write `{meant}`" if meant else f"valid keys: {', '.join(_PHASES)}"
            path = ("boot", "phases", name)
            yield _error(loaded, UNKNOWN_KEY, path, f"boot.phases has no key `{name}`", hint, of_key=True)


def _error(  # noqa: PLR0913 - the fields of a diagnostic
    loaded: LoadedRecipe, code: str, path: NodePath, message: str, hint: str | None, *, of_key: bool = False
) -> Diagnostic:
    place = loaded.place(path, of_key=of_key)
    return diagnostic(code, message, hint, place, _dotted(path))


def _dotted(path: NodePath) -> str:
    return ".".join(map(str, path))


def _items(node: Any, key: str) -> Iterator[tuple[int, MapNode]]:
    value = node.get(key) if isinstance(node, MapNode) else None
    items = enumerate(value) if isinstance(value, ListNode) else ()
    return ((index, item) for index, item in items if isinstance(item, MapNode))


def _mapping(node: Any, key: str) -> MapNode:
    value = node.get(key) if isinstance(node, MapNode) else None
    return value if isinstance(value, MapNode) else MapNode()
