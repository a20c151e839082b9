"""Values: what was copied from a guide, a template or a shell, and means something else here."""

import re
from collections.abc import Iterator
from typing import Any

from gb300serve.core.redaction import holds_secret
from gb300serve.core.rules import Finding
from gb300serve.core.text import printable
from gb300serve.document.nodes import Path
from gb300serve.lint.subject import OPTIONS, LintSubject, rule
from gb300serve.plan.secrets import LiteralSecret, literal_secrets, secrets_in_comments

_QUOTED = re.compile(r"(?s)\\?([\"']).*\\?\1")
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_BRACES = re.compile(r"\{[a-z_]+\}")
_VARIABLE = re.compile(
    r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::?[-?+=][^}]*)?\}|\$[A-Za-z_][A-Za-z0-9_]*|\$\([^)]*\)|%[A-Z_]{3,}%"
)
_PLACEHOLDER = re.compile(
    r"/(?:absolute/)?path/to\b|(?:^|[/_-])path-to-|<[A-Za-z][^<>]*>|\byour[-_ /]|[/_-]your[A-Z_-]|\bYOUR\b|YOUR_|"
    r"\bchange[-_ ]?me\b|\breplace[-_ ]?(?:me|this)\b|\bfill[-_ ]?(?:me|this)[-_ ]?in\b|\bTODO\b|\bFIXME\b|\bTBD\b|"
    r"\b[xX]{3,}\b|/foo(?:/|$)|/some/(?:path|dir)|/\.\.\.|\.\.\./|/…|…/|\bplaceholder\b|/home/(?:user|username|you|me)/",
    re.IGNORECASE,
)
# Spaces that are no blank, marks that are not seen, quotation marks and dashes of word processors.
_INVISIBLE = re.compile("[\u00a0\u00ad\u2000-\u200f\u2028-\u202f\u205f-\u2064\u2066-\u2069\u3000\ufeff]")
_TYPESET = re.compile("[\u2010-\u2015\u2018-\u201f\u2032-\u2036\u2212]")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

# Ports, addresses and connector settings are texts there.
_LOOSE = frozenset({"kv_transfer_config", "ec_transfer_config", "additional_config", "default_chat_template_kwargs"})
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


def _possibly_placeholder(text: str) -> bool:
    return any(word in text for word in _WORDS)


@rule("VAL001", "warning")
def quotes_inside_value(subject: LintSubject) -> Iterator[Finding]:
    """A value carries quotation marks of its own.

    Why: no shell removes them here: the engine or the variable gets them as part of the value.
    Fix: write the value once quoted, as YAML needs it.
    """
    if not any(start in subject.joined for start in ("\0'", '\0"', "\0\\")):
        return
    for path, _, value in subject.plain_texts:
        if len(value) > 1 and value[0] in "\"'\\" and _QUOTED.fullmatch(value):
            inner = value.strip("\\\"'")
            yield Finding(
                path,
                f"{_where(path)} is {_shown(value)}: the quotation marks are part of the value",
                f"write {_shown(inner)}",
            )


@rule("VAL002", "error")
def unrendered_template(subject: LintSubject) -> Iterator[Finding]:
    """A template's braces were left in a value.

    Why: nothing renders them: the engine, docker or the path gets `{{ … }}` as text.
    Fix: write the value, or let the tool that renders the template write the recipe.
    """
    if "{" not in subject.joined:
        return
    for path, _, value in subject.plain_texts:
        if "{" in value and (match := _TEMPLATE.search(value) or _BRACES.fullmatch(value)):
            yield Finding(
                path, f"{_where(path)} holds {_shown(match[0])}, which nothing renders", "write the value itself"
            )


@rule("VAL003", "warning")
def unexpanded_variable(subject: LintSubject) -> Iterator[Finding]:
    """A value names a variable of the shell.

    Why: `$` is a plain character but for `${…}` in paths: the container gets the text, not the variable's value.
    Fix: write the value; for secrets use `container.secrets`, for directories of the site `${models}`, `${cache}`.
    """
    if "$" not in subject.joined and "%" not in subject.joined:
        return
    for path, name, value in subject.plain_texts:
        if "$" not in value and "%" not in value:
            continue
        match = _VARIABLE.search(value)
        if match and not (path[-1] in _EXPANDED and match[0].startswith("${")):
            named = path[:2] == ("container", "env")
            hint = "write the value" + (f", or container.secrets: {{{name}: {{env: {name}}}}}" if named else "")
            yield Finding(path, f"{_where(path)} holds {_shown(match[0])}, which nothing expands", hint)


@rule("VAL004", "warning")
def blank_around_value(subject: LintSubject) -> Iterator[Finding]:
    """A value begins or ends with a blank or a line break.

    Why: names, paths and tokens with a blank at the end are other ones, and nobody sees it in a log.
    Fix: remove it; a block text (`|`) ends with a line break unless it is written `|-`.
    """
    if not any(edge in subject.joined for edge in _EDGES):
        return
    for path, _, value in subject.plain_texts:
        if value and (value[0].isspace() or value[-1].isspace()):
            yield Finding(
                path, f"{_where(path)} is {_shown(value)}: it has a blank around it", "remove it (`|-` for block texts)"
            )


@rule("VAL005", "error")
def invisible_character(subject: LintSubject) -> Iterator[Finding]:
    """A value holds a character that is not what it looks like.

    Why: a no-break space, a zero-width mark, a long dash or curly quotes, as web pages and chats put them in, make
    another name, path or flag.
    Fix: type the value again.
    """
    if subject.joined.isascii():
        return
    for path, _, value in subject.plain_texts:
        if value.isascii():
            continue
        match = _INVISIBLE.search(value) or _TYPESET.search(value)
        if match:
            message = f"{_where(path)} holds U+{ord(match[0]):04X} at character {match.start() + 1}"
            yield Finding(path, message, "type the value again with plain blanks, dashes and quotes")


@rule("VAL006", "warning")
def number_as_text(subject: LintSubject) -> Iterator[Finding]:
    """A number or a boolean stands as text inside an option's JSON.

    Why: `"5"` and `"true"` reach the engine as text: some classes convert it, others compare it and are never equal.
    Fix: write it without quotes.
    """
    for path, _, value in subject.plain_texts:
        if path[:2] != OPTIONS or len(path) < 4 or path[2] in _LOOSE or isinstance(path[3], int):
            continue
        if _NUMBER.fullmatch(value) or value in ("true", "false", "null"):
            yield Finding(path, f"{_where(path)} is the text {_shown(value)}", f"write {value}, without quotes")


@rule("VAL007", "error")
def placeholder_value(subject: LintSubject) -> Iterator[Finding]:
    """A placeholder was never filled in.

    Why: docker makes an empty directory of a path that is not there, and the engine dies in it or serves nothing.
    Fix: write the real value.
    """
    if not _possibly_placeholder(subject.joined.lower()):
        return
    for path, _, value in subject.plain_texts:
        if (match := _PLACEHOLDER.search(value)) and not value.startswith("<|"):
            yield Finding(path, f"{_where(path)} is a placeholder: {_shown(match[0])}", "write the real value")


@rule("SEC003", "error")
def literal_secret_in_recipe(subject: LintSubject) -> Iterator[Finding]:
    """A token, key or password stands in the recipe.

    Why: recipes are committed, copied and printed: a literal secret must be taken for known.
    Fix: replace it at its issuer, and write `container.secrets: {NAME: {env: NAME}}` (or `{file: /path}`); an option
    then says `{secret: NAME}`.
    """
    yield from map(_finding, subject.literals)


def in_values(root: Any) -> Iterator[Finding]:
    """The findings about the values and keys of any file, a recipe or not."""
    yield from map(_finding, literal_secrets(root))


def _finding(literal: LiteralSecret) -> Finding:
    if literal.in_key:
        hint = "replace it at its issuer, and remove it"
        return Finding(literal.path, f"a key here holds a literal secret ({literal.kind})", hint, of_key=True)
    path = literal.path
    name = str(path[-1]) if path[:2] == ("container", "env") else "NAME"
    hint = f"replace it at its issuer, and write container.secrets: {{{name}: {{env: {name}}}}}"
    return Finding(path, f"{'.'.join(map(str, path))} holds a literal secret ({literal.kind})", hint)


@rule("SEC004", "error")
def literal_secret_in_comment(subject: LintSubject) -> Iterator[Finding]:
    """A comment holds a token, key or password.

    Why: a comment is committed and copied like everything else.
    Fix: remove it, and replace the secret at its issuer.
    """
    yield from in_text(subject.loaded.source.text)


def in_text(text: str) -> Iterator[Finding]:
    """The findings about the comments of any file."""
    for number, kind in secrets_in_comments(text):
        message = f"the comment on line {number} holds a literal secret ({kind})"
        yield Finding((), message, "remove it, and replace it at its issuer", line=number)


@rule("SEC005", "warning")
def secret_file_relative(subject: LintSubject) -> Iterator[Finding]:
    """The file of a secret is not a whole path.

    Why: it is looked for wherever the command happens to be started.
    Fix: write the whole path.
    """
    for name, secret in subject.container.secrets.items():
        if secret.file and not secret.file.startswith(("/", "${", "~/")):
            place = ("container", "secrets", name, "file")
            yield Finding(place, f"the file of {name} is not a whole path", "begin with /")


@rule("SEC006", "note")
def variable_and_secret(subject: LintSubject) -> Iterator[Finding]:
    """A name stands both in `env` and in `secrets`.

    Why: docker takes the later one, which is the secret: the value in `env` only looks as if it counted.
    Fix: keep the secret.
    """
    for name in subject.container.env:
        if name in subject.container.secrets and holds_secret(name):
            yield Finding(
                ("container", "env", name), f"{name} is a secret too, which wins", "remove it from env", of_key=True
            )
