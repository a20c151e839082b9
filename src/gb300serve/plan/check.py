"""Check a loaded recipe: engine options against the option table, and references to variables, secrets and phases."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from gb300serve.boot.phases import Phase
from gb300serve.core.diagnostics import Diagnostic, diagnostic, dotted_path
from gb300serve.core.redaction import holds_secret, may_hold_secret, named_secret, redact, secret_kind
from gb300serve.core.text import suggestion
from gb300serve.core.values import WrittenFloat
from gb300serve.document.nodes import DocumentTexts, ListNode, MapNode, Path, Text, document_texts, plus_of_key
from gb300serve.document.validate import place_of_key
from gb300serve.engines.base import Problem
from gb300serve.engines.registry import ENGINES
from gb300serve.plan.compile import VariableError, expand
from gb300serve.plan.model import SECRET, secret_name, with_secret_placeholders
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.merge import split_path
from gb300serve.recipe.model import Recipe
from gb300serve.recipe.site import DIRECTORIES

# The values of these options are secrets, whatever they look like.
SECRET_OPTIONS = frozenset({"api_key", "hf_token", "admin_api_key", "ssl_keyfile_password"})

_OPTIONS = ("engine", "options")
_ARGUMENTS = ("extra_args", "launcher")
# In these sections the name decides: every value under `…_TOKEN` is a secret.
_NAMED = (("container", "env"), ("container", "labels"), ("container", "log"))
_REFERENCES = tuple(("engine", "options", name) for name in SECRET_OPTIONS)
_PROSE = frozenset({"title", "limits", "evidence", "probes", "lint", "boot"})
_NOT_LITERAL = r"\$\{secret:[^}]*\}|\$\{?[A-Za-z_]\w*\}?|/.*|EMPTY|None|"
# No pattern matches it, so the texts of a recipe can be joined and searched at once.
_SEPARATOR = "\0"
_NUMBERS = (int, float, WrittenFloat)


class LiteralSecret(NamedTuple):
    """A literal secret: its path, its kind (which never contains its text), and its text, which must not be printed."""

    path: Path
    kind: str
    value: str
    in_key: bool = False


def literal_secrets(root: Any, contents: DocumentTexts | None = None) -> Iterator[LiteralSecret]:
    """All literal secrets of a recipe, valid or not. `contents` has the texts of the root, if known."""
    texts, keys = contents or document_texts(root)
    joined = _SEPARATOR.join([value for _, _, value in texts] + [key for _, key, _ in keys])
    has_pattern = secret_kind(joined) is not None
    if not has_pattern:
        texts = [text for text in texts if may_hold_secret(text.name) or text.name in _ARGUMENTS]
    yield from _in_texts(texts, has_pattern=has_pattern)
    for path, key, value in keys:
        if has_pattern and (kind := secret_kind(key)) is not None:
            yield LiteralSecret(path, kind, key, in_key=True)
        if type(value) in _NUMBERS and holds_secret(key) and (path[:2] in _NAMED or path[:3] in _REFERENCES):
            yield LiteralSecret(path, f"the value of {key}", str(value))


def _in_texts(texts: Iterable[Text], *, has_pattern: bool) -> Iterator[LiteralSecret]:
    """The literal secrets among texts; `has_pattern`: one of them matches the pattern of a secret."""
    after_flag = False
    for path, name, value in texts:
        kind = secret_kind(value) if has_pattern else None
        if path[0] == "engine" and len(path) > 1:  # `engine` itself may be a text
            kind = kind or _in_engine(path, value, after_flag=after_flag)
            after_flag = path[1] in _ARGUMENTS and value.lstrip("-").replace("-", "_") in SECRET_OPTIONS
        if kind is None and may_hold_secret(name) and not _is_reference(path):
            # In the JSON of an option, the name decides too; in other places, the value must look random.
            is_json = path[:2] == _OPTIONS and len(path) > 3
            kind = named_secret(name, value, strict=path[:2] not in _NAMED and not is_json)
        if kind is not None:
            yield LiteralSecret(path, kind, value)


def _in_engine(path: Path, value: str, *, after_flag: bool) -> str | None:
    if after_flag and path[1] in _ARGUMENTS and not re.fullmatch(_NOT_LITERAL, value):
        return "the value of a secret flag"
    if path[:2] == _OPTIONS and len(path) > 2 and path[2] in SECRET_OPTIONS:
        return None if path[-1] == "secret" or re.fullmatch(_NOT_LITERAL, value) else f"the value of {path[2]}"
    return None


def _is_reference(path: Path) -> bool:
    """Whether the path holds the name of a secret, or prose about it, not its value."""
    return path[0] in _PROSE or path[:2] == ("container", "secrets") or path[-1] == "secret" or path[:3] in _REFERENCES


def secrets_in_comments(text: str) -> Iterator[tuple[int, str]]:
    """The lines (from 1) whose comments contain a secret, and its kind."""
    if "#" not in text or secret_kind(text) is None:
        return
    for number, line in enumerate(text.split("\n"), 1):
        match = re.search(r"(?:^|\s)#(.*)$", line)
        if match and (kind := secret_kind(match[1])) is not None:
            yield number, kind


def redact_diagnostics(diagnostics: Iterable[Diagnostic], root: Any) -> tuple[Diagnostic, ...]:
    """The diagnostics without the literal secrets of the recipe."""
    original = tuple(diagnostics)
    return without_secrets(original, literal_secrets(root)) if original else original


def without_secrets(diagnostics: Iterable[Diagnostic], literals: Iterable[LiteralSecret]) -> tuple[Diagnostic, ...]:
    """The diagnostics without these literal secrets."""
    secrets = tuple(secret.value for secret in literals)
    return tuple(_redacted(diagnostic, secrets) for diagnostic in diagnostics)


def _redacted(original: Diagnostic, secrets: tuple[str, ...]) -> Diagnostic:
    message = redact(original.message, secrets)
    hint = redact(original.hint, secrets) if original.hint else original.hint
    path = redact(original.path, secrets) if original.path else original.path
    if (message, hint, path) == (original.message, original.hint, original.path):
        return original
    return replace(original, message=message, hint=hint, path=path)


UNKNOWN_KEY = "FMT001"
UNKNOWN_OPTION = "OPT001"
UNDECLARED = "SEC001"
NO_SOURCE = "SEC002"
UNKNOWN_VARIABLE = "VAR001"

_PHASES = tuple(phase.value for phase in Phase)

# These concern the option, not its value.
_AT_THE_KEY = frozenset({"OPT001", "OPT005", "OPT006", "OPT013"})


def check(loaded: LoadedRecipe) -> tuple[Diagnostic, ...]:
    """All errors and notes of a recipe, in the order of the file."""
    own_checks = (_options, _secrets, _variables, _phases, _tuning)
    problems = (*loaded.problems, *chain.from_iterable(find(loaded) for find in own_checks))
    own = loaded.source.name
    ordered = sorted(dict.fromkeys(problems), key=lambda problem: (problem.file != own, problem.position))
    return redact_diagnostics(ordered, loaded.root)


def _tuning(loaded: LoadedRecipe) -> Iterator[Diagnostic]:
    """The tuning set of another release, which a child or `--set` leaves behind."""
    if (foreign := loaded.foreign_tuning) is None:
        return
    message = f"the tuning set {foreign.identity[:8]} is not inherited: {foreign.path} changes what the set is named by"
    hint = "boot it once and write its own boot.tuning_cache, or `tuning_cache: null` if it has none"
    yield diagnostic("EXT006", message, hint, loaded.place(split_path(foreign.path), of_key=True), foreign.path)


def _options(loaded: LoadedRecipe) -> Iterator[Diagnostic]:
    section = _mapping(loaded.root, "engine")
    options = section.get("options")
    name, version = section.get("name"), section.get("version")
    if not isinstance(options, MapNode) or not isinstance(name, str) or name not in ENGINES:
        return
    reported = {problem.position for problem in loaded.problems}
    version = version if isinstance(version, str) else None
    placed = (_placed(loaded, problem) for problem in ENGINES[name].check(with_secret_placeholders(options), version))
    yield from (diagnostic for diagnostic in placed if diagnostic.position not in reported)


def _placed(loaded: LoadedRecipe, problem: Problem) -> Diagnostic:
    path: Path = ("engine", "version") if problem.code == "OPT008" else (*_OPTIONS, *problem.path)
    place = loaded.place(path, of_key=problem.code in _AT_THE_KEY)
    is_secret = problem.path[:1] and problem.path[0] in SECRET_OPTIONS
    hint = "write {secret: NAME}, and declare NAME in container.secrets" if is_secret else problem.hint
    if hint is None and problem.code == UNKNOWN_OPTION:
        hint = place_of_key(Recipe, str(problem.path[-1]))
    fix = None if is_secret else problem.fix
    if fix is not None and problem.code in _AT_THE_KEY and plus_of_key(loaded.root, path):
        hint, fix = f"write '+{fix}'", f"+{fix}"
    return diagnostic(problem.code, problem.message, hint, place, dotted_path(path), severity=problem.severity, fix=fix)


def _secrets(loaded: LoadedRecipe) -> Iterator[Diagnostic]:
    declared = _mapping(_mapping(loaded.root, "container"), "secrets")
    for path, name in _references(loaded):
        if name not in declared:
            message = f"{dotted_path(path)} uses secret {name}, which container.secrets does not declare"
            hint = f"add `{name}: {{env: {name}}}` to container.secrets"
            yield _error(loaded, UNDECLARED, path, message, hint)
    for name, value in declared.items():
        if isinstance(value, MapNode) and len(value) != 1 and set(value) <= {"env", "file"}:
            message = f"container.secrets.{name} requires exactly one source: a variable or a file"
            hint = f"write {{env: {name}}} or {{file: /a/file}}"
            yield _error(loaded, NO_SOURCE, ("container", "secrets", name), message, hint)


def _references(loaded: LoadedRecipe) -> Iterator[tuple[Path, str]]:
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


def _leaves(node: Any, path: Path) -> Iterator[tuple[Path, Any]]:
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


def _paths(root: Any) -> Iterator[tuple[Path, str]]:
    container = _mapping(root, "container")
    places: list[tuple[Path, Any]] = [(("model", "path"), _mapping(root, "model").get("path"))]
    places += ((("models", index, "path"), item.get("path")) for index, item in _items(root, "models"))
    places += (
        (("container", "mounts", index, "source"), item.get("source")) for index, item in _items(container, "mounts")
    )
    secrets = _mapping(container, "secrets")
    places += ((("container", "secrets", name, "file"), _mapping(secrets, name).get("file")) for name in secrets)
    return ((path, text) for path, text in places if isinstance(text, str))


def _phases(loaded: LoadedRecipe) -> Iterator[Diagnostic]:
    for name in _mapping(_mapping(loaded.root, "boot"), "phases"):
        if name not in _PHASES:
            meant = suggestion(name, _PHASES)
            hint = f"write `{meant}`" if meant else f"valid keys: {', '.join(_PHASES)}"
            path = ("boot", "phases", name)
            yield _error(loaded, UNKNOWN_KEY, path, f"boot.phases has no key `{name}`", hint, of_key=True)


def _error(  # noqa: PLR0913 - the fields of a diagnostic
    loaded: LoadedRecipe, code: str, path: Path, message: str, hint: str | None, *, of_key: bool = False
) -> Diagnostic:
    return diagnostic(code, message, hint, loaded.place(path, of_key=of_key), dotted_path(path))


def _items(node: Any, key: str) -> Iterator[tuple[int, MapNode]]:
    value = node.get(key) if isinstance(node, MapNode) else None
    items = enumerate(value) if isinstance(value, ListNode) else ()
    return ((index, item) for index, item in items if isinstance(item, MapNode))


def _mapping(node: Any, key: str) -> MapNode:
    value = node.get(key) if isinstance(node, MapNode) else None
    return value if isinstance(value, MapNode) else MapNode()
