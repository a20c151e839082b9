"""Pins: the command that was verified is the command that compiles."""

import shlex
from collections.abc import Iterator

from gb300serve.core.errors import CompileError
from gb300serve.core.rules import Finding
from gb300serve.core.words import changed_words
from gb300serve.lint.book import rule
from gb300serve.lint.subject import LintSubject
from gb300serve.render.docker_run import pinned


@rule("PIN001", "error")
def pinned_command_differs(subject: LintSubject) -> Iterator[Finding]:
    """The release no longer compiles to its pinned command.

    Why: figures, receipts and the tuning cache belong to the command that was measured; a changed word is another
    launch under the old name.
    Fix: make the change a new release that extends this one.
    """
    if subject.pinned is None:
        return
    try:
        compiled = pinned_words(pinned(subject.plan))
    except CompileError as error:
        yield Finding((), f"the pinned release does not compile: {error.message}", error.hint)
        return
    removed, added = changed_words(pinned_words(subject.pinned), compiled)
    if removed or added:
        message = f"compiles to other words than its pinned command: {_listed(removed, added)}"
        yield Finding(("release",), message, "make it a new release; `pin --force` would rewrite what was verified")


@rule("PIN002", "note")
def verified_without_pin(subject: LintSubject) -> Iterator[Finding]:
    """A verified release has no pinned command beside it.

    Why: without one nobody sees when a change of the recipe, of its parent or of this tool changes what is launched.
    Fix: `gb300serve pin REF` writes `<release>.command`; commit it.
    """
    if subject.recipe.status == "verified" and subject.pinned is None and subject.loaded.found.directory is not None:
        yield Finding(("status",), "verified, and not pinned", f"run `gb300serve pin {subject.recipe.ref}`")


def pinned_words(text: str) -> list[str]:
    """The words of a pinned command; text that no shell would read has none."""
    try:
        return [word for word in shlex.split(text) if word != "\n"]  # what shlex makes of a continued line
    except ValueError:
        return []


def _listed(removed: list[str], added: list[str]) -> str:
    parts = [f"pinned {' '.join(removed)}"] if removed else []
    parts += [f"now {' '.join(added)}"] if added else []
    return ", ".join(parts)
