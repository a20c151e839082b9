"""Secrets: recipes are published, secrets are references. What a finding is about is never repeated."""

from collections.abc import Iterator
from typing import Any

from gb300serve.core.redaction import holds_secret
from gb300serve.core.rules import Finding
from gb300serve.lint.book import rule
from gb300serve.lint.subject import LintSubject
from gb300serve.plan.secrets import Literal, in_comments, literal_secrets


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


def _finding(literal: Literal) -> Finding:
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
    for number, kind in in_comments(text):
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
