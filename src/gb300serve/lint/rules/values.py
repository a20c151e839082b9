"""Rules for values that were copied from a guide, a template or a shell."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gb300serve.core.redaction import holds_secret
from gb300serve.core.rules import Finding
from gb300serve.core.text import find_placeholder, printable
from gb300serve.document.nodes import Path, document_texts
from gb300serve.lint.subject import OPTIONS, LintSubject, rule
from gb300serve.plan.check import LiteralSecret, literal_secrets, secrets_in_comments

_QUOTES = "\\\"'"
_QUOTED = re.compile(r"(?s)\\?([\"']).*\\?\1")
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_BRACES = re.compile(r"\{[a-z_]+\}")
_VARIABLE = re.compile(
    r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::?[-?+=][^}]*)?\}|\$[A-Za-z_][A-Za-z0-9_]*|\$\([^)]*\)|%[A-Z_]{3,}%"
)
# Spaces that are no blank, marks that are not seen, quotation marks and dashes of word processors.
_INVISIBLE = re.compile("[\u00a0\u00ad\u2000-\u200f\u2028-\u202f\u205f-\u2064\u2066-\u2069\u3000\ufeff]")
_TYPESET = re.compile("[\u2010-\u2015\u2018-\u201f\u2032-\u2036\u2212]")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

# Ports, addresses and connector settings are texts there.
_LOOSE = frozenset({"kv_transfer_config", "ec_transfer_config", "additional_config"})
_EXPANDED = frozenset({"path", "source", "file"})


def _where(path: Path) -> str:
    return ".".join(map(str, path))


def _shown(value: str) -> str:
    text = printable(value).replace("\n", "\\n")
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}…`"


_EDGES = tuple(edge for blank in (" ", "\t", "\n", "\u00a0") for edge in (f"\0{blank}", f"{blank}\0"))
# The placeholders' own words: without one of them there is nothing to search for.
_WORDS = (
    "path/to", "path-to-", "<", "your", "change", "replace", "fill", "todo", "fixme", "tbd", "xxx", "/foo", "/some/",
    "...", "…", "placeholder", "/home/",
)  # fmt: skip


@rule("VAL001", "warning")
def quotes_inside_value(subject: LintSubject) -> Iterator[Finding]:
    """A value contains its own quotation marks.

    Why: No shell removes them here. They become part of the value.
    Fix: Quote the value once, as YAML requires.
    """
    if not any(start in subject.joined for start in ("\0'", '\0"', "\0\\")):
        return
    for path, _, value in subject.plain_texts:
        if len(value) > 1 and value[0] in _QUOTES and _QUOTED.fullmatch(value):
            message = f"{_where(path)} is {_shown(value)}: the quotation marks are part of the value"
            yield Finding(path, message, f"write {_shown(value.strip(_QUOTES))}")


@rule("VAL002", "error")
def unrendered_template(subject: LintSubject) -> Iterator[Finding]:
    """A value contains an unrendered template.

    Why: Nothing renders it: the engine, Docker or the path gets `{{ … }}` as text.
    Fix: Write the value, or let the tool that renders the template write the recipe.
    """
    for path, _, value in subject.plain_texts if "{" in subject.joined else ():
        if "{" in value and (match := _TEMPLATE.search(value) or _BRACES.fullmatch(value)):
            message = f"{_where(path)} holds {_shown(match[0])}, which nothing renders"
            yield Finding(path, message, "write the value itself")


@rule("VAL003", "warning")
def unexpanded_variable(subject: LintSubject) -> Iterator[Finding]:
    """A value contains a shell variable.

    Why: Only `${…}` in paths is expanded. Elsewhere the container gets the text, not the variable's value.
    Fix: Write the value. Use `container.secrets` for secrets and `${models}` or `${cache}` for site directories.
    """
    if "$" not in subject.joined and "%" not in subject.joined:
        return
    for path, name, value in subject.plain_texts:
        match = _VARIABLE.search(value) if "$" in value or "%" in value else None
        if match and not (path[-1] in _EXPANDED and match[0].startswith("${")):
            secret = f", or container.secrets: {{{name}: {{env: {name}}}}}" if path[:2] == ("container", "env") else ""
            message = f"{_where(path)} holds {_shown(match[0])}, which nothing expands"
            yield Finding(path, message, f"write the value{secret}")


@rule("VAL004", "warning")
def blank_around_value(subject: LintSubject) -> Iterator[Finding]:
    """A value starts or ends with whitespace.

    Why: A name, path or token with trailing whitespace is a different value, and logs do not show it.
    Fix: Remove the whitespace. A block text (`|`) ends with a line break unless it is written as `|-`.
    """
    for path, _, value in subject.plain_texts if any(edge in subject.joined for edge in _EDGES) else ():
        if value and (value[0].isspace() or value[-1].isspace()):
            message = f"{_where(path)} is {_shown(value)}: it starts or ends with whitespace"
            yield Finding(path, message, "remove it (`|-` for block texts)")


@rule("VAL005", "error")
def invisible_character(subject: LintSubject) -> Iterator[Finding]:
    """A value contains an invisible or typographic character.

    Why: No-break spaces, zero-width marks, long dashes and curly quotes come from web pages and chats. They change
    names, paths and flags.
    Fix: Type the value again.
    """
    for path, _, value in () if subject.joined.isascii() else subject.plain_texts:
        match = _INVISIBLE.search(value) or _TYPESET.search(value)
        if match:
            message = f"{_where(path)} holds U+{ord(match[0]):04X} at character {match.start() + 1}"
            yield Finding(path, message, "type the value again with plain spaces, dashes and quotes")


@rule("VAL006", "warning")
def number_as_text(subject: LintSubject) -> Iterator[Finding]:
    """A number or boolean inside an option's JSON is quoted.

    Why: The engine gets `"5"` and `"true"` as text. Some classes convert it; others compare it and never match. A chat
    template takes every text that is not empty for true, also `"False"`.
    Fix: Write it without quotes.
    """
    for place, key, value in subject.arguments:
        texts = document_texts(value).texts if isinstance(value, Mapping) and key not in _LOOSE else ()
        for path, _, text in texts:
            is_boolean = text.lower() in ("true", "false", "null")
            # A template may want the text of a number, but it takes every quoted boolean for true.
            if is_boolean or (key != "default_chat_template_kwargs" and _NUMBER.fullmatch(text)):
                where, fix = ((*place, *path), text.lower()) if place[:2] == OPTIONS else (place, None)
                message = f"{'.'.join(map(str, (*place[:2], key, *path)))} is the text {_shown(text)}"
                yield Finding(where, message, f"write {text.lower()}, without quotes", fix=fix)


@rule("VAL007", "error")
def placeholder_value(subject: LintSubject) -> Iterator[Finding]:
    """A placeholder was not replaced.

    Why: Docker creates an empty directory for a missing path, and the engine fails or serves nothing.
    Fix: Write the real value.
    """
    text = subject.joined.lower()
    for path, _, value in subject.plain_texts if any(word in text for word in _WORDS) else ():
        if (match := find_placeholder(value)) and not value.startswith("<|"):
            yield Finding(path, f"{_where(path)} is a placeholder: {_shown(match[0])}", "write the real value")


@rule("SEC003", "error")
def literal_secret_in_recipe(subject: LintSubject) -> Iterator[Finding]:
    """The recipe contains a literal token, key or password.

    Why: Recipes are committed, copied and printed. Treat a literal secret as exposed.
    Fix: Revoke it where it was issued, and write `container.secrets: {NAME: {env: NAME}}` (or `{file: /path}`). Use
    `{secret: NAME}` in options.
    """
    yield from map(_finding, subject.literals)


def in_values(root: Any) -> Iterator[Finding]:
    """The findings about the values and keys of any file, a recipe or not."""
    yield from map(_finding, literal_secrets(root))


def _finding(literal: LiteralSecret) -> Finding:
    if literal.in_key:
        hint = "revoke it where it was issued, and remove it from the file"
        return Finding(literal.path, f"a key here holds a literal secret ({literal.kind})", hint, of_key=True)
    name = str(literal.path[-1]) if literal.path[:2] == ("container", "env") else "NAME"
    hint = f"revoke it where it was issued, and write container.secrets: {{{name}: {{env: {name}}}}}"
    return Finding(literal.path, f"{_where(literal.path)} holds a literal secret ({literal.kind})", hint)


@rule("SEC004", "error")
def literal_secret_in_comment(subject: LintSubject) -> Iterator[Finding]:
    """A comment contains a token, key or password.

    Why: Comments are committed and copied like everything else.
    Fix: Remove it, and revoke the secret where it was issued.
    """
    yield from in_text(subject.loaded.source.text)


def in_text(text: str) -> Iterator[Finding]:
    """The findings about the comments of any file."""
    for number, kind in secrets_in_comments(text):
        message = f"the comment on line {number} holds a literal secret ({kind})"
        yield Finding((), message, "remove it from the file, and revoke it where it was issued", line=number)


@rule("SEC005", "warning")
def secret_file_relative(subject: LintSubject) -> Iterator[Finding]:
    """The file of a secret has a relative path.

    Why: The path would depend on the directory where the command runs.
    Fix: Write an absolute path.
    """
    for name, secret in subject.container.secrets.items():
        if secret.file and not secret.file.startswith(("/", "${", "~/")):
            place = ("container", "secrets", name, "file")
            yield Finding(place, f"the file of {name} is not an absolute path", "write an absolute path (`/…`)")


@rule("SEC006", "note")
def variable_and_secret(subject: LintSubject) -> Iterator[Finding]:
    """A name is in both `env` and `secrets`.

    Why: Docker uses the later value, which is the secret. The value in `env` has no effect.
    Fix: Keep the secret.
    """
    for name in subject.container.env:
        if name in subject.container.secrets and holds_secret(name):
            message = f"{name} is also in secrets, which take precedence"
            yield Finding(("container", "env", name), message, "remove it from env", of_key=True)
