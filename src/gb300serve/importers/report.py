"""What an importer has to say of what it read: findings with line and column, and the stop where reading ends."""

import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gb300serve.core.diagnostics import Diagnostic, Severity, diagnostic
from gb300serve.core.errors import CompileError, RecipeError
from gb300serve.core.redaction import HIDDEN, redact, redact_line


class TextPosition(NamedTuple):
    """Line and column, from 1."""

    line: int
    column: int


MENDED = "IMP001"
COPIED = "IMP002"
NOT_TAKEN_OVER = "IMP003"
CLEAR_TEXT = "IMP004"
REFERENCE = "IMP005"
UNSET = "IMP006"
JSON_MENDED = "IMP007"
MISPLACED = "IMP008"
LAUNCHER = "IMP009"
REPEATED = "IMP010"
UNKNOWN_OPTION = "IMP011"
REFUSED_VALUE = "IMP012"
UNPINNED = "IMP013"
PLACEHOLDER = "IMP014"
LEFT_OUT = "IMP015"
SPELLING = "IMP016"
UNREADABLE = "IMP020"

# An issuer's prefix wherever it stands, also glued to another word by a lost blank or quote. The first eight signs are
# enough for a message to be cleaned by (core.redaction.redact).
TOKEN = re.compile(
    r"(?:hf_|sk-|gh[pousr]_|github_pat_|glpat-|nvapi-|xox[abeoprs]-|AKIA|ASIA|AIza|dckr_|npm_|pypi-)"
    r"(?=[A-Za-z_-]{0,40}[0-9A-Z])[A-Za-z0-9_-]{10,}"
)

MAX_FINDINGS = 200

BY_CONTAINER = (
    "start it, then import the running container: gb300serve import --container NAME (or docker inspect NAME)"
)


class NotImportableError(CompileError):
    """The text is a program, or says no launch: it cannot be imported without running it."""

    def __init__(self, reason: str, diagnostics: tuple[Diagnostic, ...], hint: str) -> None:
        super().__init__(reason, hint=hint, diagnostics=diagnostics)


class SourceInvalidError(RecipeError):
    """The file is not what its form says it is."""


class UnresolvedError(Exception):
    """Reading ends here: what stands at `place` cannot be known without running it."""

    def __init__(self, reason: str, place: TextPosition | None, hint: str = BY_CONTAINER) -> None:
        super().__init__(reason)
        self.reason, self.place, self.hint = reason, place, hint


@dataclass(slots=True)
class Report:
    """The findings about one text, in the order in which they were made; each is free of secrets."""

    file: str | None = None
    hidden: list[str] = field(default_factory=list)
    """Secrets met so far: no message may hold one."""
    _found: dict[Diagnostic, None] = field(default_factory=dict)

    def say(  # noqa: PLR0913 - the fields of a diagnostic
        self,
        code: str,
        message: str,
        hint: str | None = None,
        at: TextPosition | None = None,
        path: str | None = None,
        *,
        severity: Severity | None = None,
    ) -> None:
        line, column = at or (None, None)
        self.add(diagnostic(code, message, hint, (self.file, line, column), path, severity=severity))

    def add(self, found: Diagnostic) -> None:
        """Each once; a text that is wrong everywhere is not listed to its end."""
        if len(self._found) < MAX_FINDINGS or found.severity == "error":
            self._found[found] = None

    def hide(self, secret: str) -> None:
        """Keep a secret out of everything said from here on, and before."""
        if secret and secret not in self.hidden:
            self.hidden.append(secret)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(map(self._clean, self._found))

    def _clean(self, found: Diagnostic) -> Diagnostic:
        hint = None if found.hint is None else self.clean(found.hint)
        path = None if found.path is None else self.clean(found.path)
        return replace(found, message=self.clean(found.message), hint=hint, path=path)

    def clean(self, text: str) -> str:
        """`text` without secrets, known ones and those that look like one."""
        return redact_line(redact(TOKEN.sub(HIDDEN, text), self.hidden))


def shorten(text: str, longest: int = 60) -> str:
    """A text short enough for a message, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"
