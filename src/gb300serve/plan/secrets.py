"""Literal secrets in a recipe: where they stand, and diagnostics that do not repeat them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.redaction import literal_secret, redact, secret_kind
from gb300serve.document.nodes import Path
from gb300serve.document.texts import Text, numbers, texts

# Options and flags whose value is a secret whatever it looks like.
SECRET_OPTIONS = frozenset({"api_key", "hf_token", "admin_api_key", "ssl_keyfile_password"})

_OPTIONS = ("engine", "options")
_ARGUMENTS = (("engine", "extra_args"), ("engine", "launcher"))
# The name decides there: whatever stands under `…_TOKEN` is one.
_NAMED = (("container", "env"), ("container", "labels"), ("container", "log"))
_PROSE = frozenset({"title", "limits", "evidence", "probes", "lint", "boot"})
_NOT_LITERAL = re.compile(r"\$\{secret:[^}]*\}|\$\{?[A-Za-z_]\w*\}?|/.*|EMPTY|None|")


class Literal(NamedTuple):
    """A literal secret: its place, what it is (never part of its text), and the text, which nothing may print."""

    path: Path
    kind: str
    value: str
    in_key: bool = False


def literal_secrets(root: Any) -> Iterator[Literal]:
    """Every literal secret below the root of a recipe, valid or not."""
    yield from in_texts(texts(root))
    yield from in_texts(numbers(root))
    yield from _in_keys(root, ())


def in_texts(found: Iterable[Text]) -> Iterator[Literal]:
    """The literal secrets among texts, which stand in the order of the file."""
    after_flag = False
    for path, name, value in found:
        is_argument = path[:2] in _ARGUMENTS
        if is_argument and after_flag and not _NOT_LITERAL.fullmatch(value):
            yield Literal(path, "the value of a secret flag", value)
        elif (kind := _kind(path, name, value)) is not None:
            yield Literal(path, kind, value)
        after_flag = is_argument and value.lstrip("-").replace("-", "_") in SECRET_OPTIONS


def _kind(path: Path, name: str, value: str) -> str | None:
    if path[:2] == _OPTIONS and len(path) > 2 and path[2] in SECRET_OPTIONS:
        reference = path[-1] == "secret" or _NOT_LITERAL.fullmatch(value)
        return None if reference else f"the value of {path[2]}"
    if path and (path[0] in _PROSE or path[:2] == ("container", "secrets")):
        return secret_kind(value)
    return literal_secret(name, value, strict=path[:2] not in _NAMED)


def _in_keys(node: object, path: Path) -> Iterator[Literal]:
    if isinstance(node, dict):
        for key, value in node.items():
            if (kind := secret_kind(key)) is not None:
                yield Literal((*path, key), kind, key, in_key=True)
            elif isinstance(value, (dict, list)):
                yield from _in_keys(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _in_keys(value, (*path, index))


def in_comments(text: str) -> Iterator[tuple[int, str]]:
    """The lines (from 1) whose comment holds a secret, and its kind."""
    if secret_kind(text) is None:
        return
    for number, line in enumerate(text.split("\n"), 1):
        match = re.search(r"(?:^|\s)#(.*)$", line)
        if match and (kind := secret_kind(match[1])) is not None:
            yield number, kind


def redacted(found: Iterable[Diagnostic], root: Any) -> tuple[Diagnostic, ...]:
    """The diagnostics without the text of any literal secret of the recipe."""
    given = tuple(found)
    if not given:
        return given
    hidden = tuple(secret.value for secret in literal_secrets(root))
    return tuple(_redacted(one, hidden) for one in given)


def _redacted(found: Diagnostic, hidden: tuple[str, ...]) -> Diagnostic:
    message = redact(found.message, hidden)
    hint = redact(found.hint, hidden) if found.hint else found.hint
    path = redact(found.path, hidden) if found.path else found.path
    if (message, hint, path) == (found.message, found.hint, found.path):
        return found
    return replace(found, message=message, hint=hint, path=path)
