"""Suggested actions as commands with the user's REF and options, ready to paste."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from gb300serve.app.environment import PROGRAM
from gb300serve.core.errors import Action, Gb300Error

# These commands take `--set`; the others find the container, which has its own settings.
_TAKES_SET = frozenset(("up", "doctor", "fit", "compile"))
# These commands take no `--on`.
_TAKES_NO_HOST = frozenset(("fit", "journal", "compile", "rules", "diagnose"))
# These commands take none of `--site`, `--station` and `--recipes`.
_TAKES_NO_SITE = frozenset(("rules", "diagnose"))


@dataclass(frozen=True, slots=True)
class Invocation:
    """How the user addressed a release: another command repeats it to address the same release."""

    ref: str = ""
    on: Literal["docker", "sim"] | None = None
    options: tuple[str, ...] = ()
    """`--site`, `--station` and `--recipes`, as given."""
    overrides: tuple[str, ...] = ()

    def command(self, verb: str, *arguments: str, ref: str | None = None) -> str:
        """A command line; `verb` may be two words (`cache seed`)."""
        words = verb.split()
        target = self.ref if ref is None else ref
        host = ("--on", "sim") if self.on == "sim" and words[0] not in _TAKES_NO_HOST else ()
        repeats = self.overrides if words[0] in _TAKES_SET and ref is None else ()
        sets = (word for override in repeats for word in ("--set", override))
        options = () if words[0] in _TAKES_NO_SITE else self.options
        return shlex.join((PROGRAM, *words, *filter(None, (target,)), *host, *options, *sets, *arguments))

    def render(self, suggestion: Action | str) -> str:
        """One line: the purpose and the command."""
        if isinstance(suggestion, str):
            return suggestion
        command = self.command(suggestion.verb, *suggestion.arguments, ref=suggestion.ref)
        return f"{suggestion.purpose}: {command}" if suggestion.purpose else command


def render_suggestions(error: Gb300Error, invocation: Invocation) -> None:
    """Render the actions that an error suggests as text, once."""
    lines = [invocation.render(suggestion) for suggestion in error.suggest]
    error.suggest = ()
    if error.suggests_in_message:
        error.message = "; ".join((error.message, *lines))
    elif lines:
        error.hint = "\n".join((*([error.hint] if error.hint else []), *lines))


@contextmanager
def suggesting(invocation: Invocation) -> Iterator[None]:
    """Errors raised in this context suggest commands about this release."""
    try:
        yield
    except Gb300Error as error:
        render_suggestions(error, invocation)
        raise
