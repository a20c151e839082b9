"""Suggested actions as commands: with the REF and the options that the user gave, ready to paste."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from gb300serve.core.errors import Action, Gb300Error

# These commands take `--set` again; the others find the container, which keeps its own settings.
_TAKES_SET = frozenset(("up", "doctor", "fit"))
# These commands ask no container host and take no `--on`.
_TAKES_NO_HOST = frozenset(("fit", "journal"))


@dataclass(frozen=True, slots=True)
class Invocation:
    """How the user addressed a release: what another command must repeat to mean the same one."""

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
        return shlex.join(("gb300serve", *words, *filter(None, (target,)), *host, *self.options, *sets, *arguments))

    def render(self, suggestion: Action | str) -> str:
        """One line: the purpose and the command."""
        if isinstance(suggestion, str):
            return suggestion
        command = self.command(suggestion.verb, *suggestion.arguments, ref=suggestion.ref)
        return f"{suggestion.purpose}: {command}" if suggestion.purpose else command


def render_suggestions(error: Gb300Error, invocation: Invocation) -> None:
    """Turn the actions that an error suggests into text, once."""
    lines = [invocation.render(suggestion) for suggestion in error.suggest]
    error.suggest = ()
    if error.suggests_in_message:
        error.message = "; ".join((error.message, *lines))
    elif lines:
        error.hint = "\n".join((*([error.hint] if error.hint else []), *lines))


@contextmanager
def suggesting(invocation: Invocation) -> Iterator[None]:
    """Errors that pass suggest commands about this release."""
    try:
        yield
    except Gb300Error as error:
        render_suggestions(error, invocation)
        raise
