"""Literal secrets in a recipe: finding them, and removing them from diagnostics."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.redaction import holds_secret, may_hold_secret, named_secret, redact, secret_kind
from gb300serve.core.values import WrittenFloat
from gb300serve.document.nodes import DocumentTexts, Path, Text, document_texts

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
            kind = named_secret(name, value, strict=path[:2] not in _NAMED)
        if kind is not None:
            yield LiteralSecret(path, kind, value)


def _in_engine(path: Path, value: str, *, after_flag: bool) -> str | None:
    """A secret by its option or flag."""
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
