"""Literal secrets in a recipe: where they stand, and diagnostics that do not repeat them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.redaction import holds_secret, may_hold_secret, named_secret, redact, secret_kind
from gb300serve.core.values import WrittenFloat
from gb300serve.document.nodes import DocumentTexts, Path, Text, document_texts

# Options and flags whose value is a secret whatever it looks like.
SECRET_OPTIONS = frozenset({"api_key", "hf_token", "admin_api_key", "ssl_keyfile_password"})

_OPTIONS = ("engine", "options")
_ARGUMENTS = ("extra_args", "launcher")
# The name decides there: whatever stands under `…_TOKEN` is one.
_NAMED = (("container", "env"), ("container", "labels"), ("container", "log"))
_REFERENCES = tuple(("engine", "options", name) for name in SECRET_OPTIONS)
_PROSE = frozenset({"title", "limits", "evidence", "probes", "lint", "boot"})
_NOT_LITERAL = r"\$\{secret:[^}]*\}|\$\{?[A-Za-z_]\w*\}?|/.*|EMPTY|None|"
# No shape crosses it: the texts of a recipe are searched as one.
_SEPARATOR = "\0"
_NUMBERS = (int, float, WrittenFloat)


class LiteralSecret(NamedTuple):
    """A literal secret: its place, what it is (never part of its text), and the text, which nothing may print."""

    path: Path
    kind: str
    value: str
    in_key: bool = False


def literal_secrets(root: Any, found: DocumentTexts | None = None) -> Iterator[LiteralSecret]:
    """Every literal secret below the root of a recipe, valid or not; `found` is what is written there, where known."""
    texts, keys = found or document_texts(root)
    joined = _SEPARATOR.join([value for _, _, value in texts] + [key for _, key, _ in keys])
    shaped = secret_kind(joined) is not None
    if not shaped:
        texts = [text for text in texts if may_hold_secret(text.name) or text.name in _ARGUMENTS]
    yield from _in_texts(texts, shaped=shaped)
    for path, key, value in keys:
        if shaped and (kind := secret_kind(key)) is not None:
            yield LiteralSecret(path, kind, key, in_key=True)
        if type(value) in _NUMBERS and holds_secret(key) and (path[:2] in _NAMED or path[:3] in _REFERENCES):
            yield LiteralSecret(path, f"the value of {key}", str(value))


def _in_texts(found: Iterable[Text], *, shaped: bool) -> Iterator[LiteralSecret]:
    """The literal secrets among texts; `shaped`: one of them has the shape of a secret."""
    after_flag = False
    for path, name, value in found:
        kind = secret_kind(value) if shaped else None
        if path[0] == "engine" and len(path) > 1:  # else the section itself is a text
            kind = kind or _in_engine(path, value, after_flag=after_flag)
            after_flag = path[1] in _ARGUMENTS and value.lstrip("-").replace("-", "_") in SECRET_OPTIONS
        if kind is None and may_hold_secret(name) and not _is_reference(path):
            kind = named_secret(name, value, strict=path[:2] not in _NAMED)
        if kind is not None:
            yield LiteralSecret(path, kind, value)


def _in_engine(path: Path, value: str, *, after_flag: bool) -> str | None:
    """A secret by its option or flag, whatever it looks like."""
    if after_flag and path[1] in _ARGUMENTS and not re.fullmatch(_NOT_LITERAL, value):
        return "the value of a secret flag"
    if path[:2] == _OPTIONS and len(path) > 2 and path[2] in SECRET_OPTIONS:
        return None if path[-1] == "secret" or re.fullmatch(_NOT_LITERAL, value) else f"the value of {path[2]}"
    return None


def _is_reference(path: Path) -> bool:
    """Whether the place names a secret, or speaks of one, instead of holding it."""
    return path[0] in _PROSE or path[:2] == ("container", "secrets") or path[-1] == "secret" or path[:3] in _REFERENCES


def secrets_in_comments(text: str) -> Iterator[tuple[int, str]]:
    """The lines (from 1) whose comment holds a secret, and its kind."""
    if "#" not in text or secret_kind(text) is None:
        return
    for number, line in enumerate(text.split("\n"), 1):
        match = re.search(r"(?:^|\s)#(.*)$", line)
        if match and (kind := secret_kind(match[1])) is not None:
            yield number, kind


def redact_diagnostics(found: Iterable[Diagnostic], root: Any) -> tuple[Diagnostic, ...]:
    """The diagnostics without the text of any literal secret of the recipe."""
    given = tuple(found)
    return without_secrets(given, literal_secrets(root)) if given else given


def without_secrets(found: Iterable[Diagnostic], literals: Iterable[LiteralSecret]) -> tuple[Diagnostic, ...]:
    """The same, where the literal secrets are known."""
    hidden = tuple(secret.value for secret in literals)
    return tuple(_redacted(one, hidden) for one in found)


def _redacted(found: Diagnostic, hidden: tuple[str, ...]) -> Diagnostic:
    message = redact(found.message, hidden)
    hint = redact(found.hint, hidden) if found.hint else found.hint
    path = redact(found.path, hidden) if found.path else found.path
    if (message, hint, path) == (found.message, found.hint, found.path):
        return found
    return replace(found, message=message, hint=hint, path=path)
