"""The findings about an imported text, with line and column, and the error that ends the reading."""

import re
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from gb300serve.core.diagnostics import Diagnostic, Severity, diagnostic
from gb300serve.core.errors import CompileError, RecipeError
from gb300serve.core.redaction import HIDDEN, redact, redact_line
from gb300serve.core.text import truncate
from gb300serve.document.nodes import ListNode, MapNode, Spot


class TextPosition(NamedTuple):
    """Line and column, from 1."""

    line: int
    column: int


START = TextPosition(1, 1)


def place_of_key(node: Any, key: str | int) -> TextPosition:
    """The position of the value of a key or an index."""
    spots = node.spots if isinstance(node, (MapNode, ListNode)) else None
    spot: Spot | None = None
    if isinstance(spots, dict) and isinstance(key, str):
        spot = spots.get(key)
    elif isinstance(spots, list) and isinstance(key, int) and key < len(spots):
        spot = spots[key]
    return TextPosition(spot.value.line + 1, spot.value.column + 1) if spot else START


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

# An issuer's prefix anywhere in a text: a lost space or quote may have joined the token to another word.
TOKEN = re.compile(
    r"(?:hf_|sk-|gh[pousr]_|github_pat_|glpat-|nvapi-|xox[abeoprs]-|AKIA|ASIA|AIza|dckr_|npm_|pypi-)"
    r"(?=[A-Za-z_-]{0,40}[0-9A-Z])[A-Za-z0-9_-]{10,}"
)
MAX_FINDINGS = 200
BY_CONTAINER = "start it, then import the running container with `import --container NAME`"
BY_CAPTURE = (
    "`import --capture` prints a script that records the launch and starts no container; "
    "or start it, and import the running container with `import --container NAME`"
)


class NotImportableError(CompileError):
    """The text is a program or contains no launch: it cannot be imported without running it."""

    def __init__(self, reason: str, diagnostics: tuple[Diagnostic, ...], hint: str) -> None:
        super().__init__(reason, hint=hint, diagnostics=diagnostics)


class SourceInvalidError(RecipeError):
    """The file does not have the format that it claims."""


class UnresolvedError(Exception):
    """The text at `place` cannot be resolved without running it. Never leaves this package."""

    def __init__(self, reason: str, place: TextPosition | None, hint: str = BY_CAPTURE) -> None:
        super().__init__(reason)
        self.reason, self.place, self.hint = reason, place, hint


@dataclass(slots=True)
class Report:
    """The findings about one text, in order, without secrets."""

    file: str | None = None
    secrets: list[str] = field(default_factory=list)
    """The secrets read so far: no message may contain one."""
    _findings: dict[Diagnostic, None] = field(default_factory=dict)

    def add(  # noqa: PLR0913 - the fields of a diagnostic
        self,
        code: str,
        message: str,
        hint: str | None = None,
        at: TextPosition | None = None,
        path: str | None = None,
        *,
        severity: Severity | None = None,
    ) -> None:
        """Add a finding once; after MAX_FINDINGS, only errors."""
        finding = diagnostic(code, message, hint, (self.file, *(at or (None, None))), path, severity=severity)
        if len(self._findings) < MAX_FINDINGS or finding.severity == "error":
            self._findings[finding] = None

    def include(self, other: "Report") -> None:
        """Add the findings about another text, such as a script that this one calls."""
        self._findings.update(dict.fromkeys(other.diagnostics))

    def drop(self, code: str) -> None:
        """Remove the findings of a code: something else answers them."""
        self._findings = {finding: None for finding in self._findings if finding.code != code}

    def merge(self, other: "Report") -> None:
        """Add the findings of a part of the text."""
        for finding in other._findings:
            if len(self._findings) < MAX_FINDINGS or finding.severity == "error":
                self._findings[finding] = None

    def hide(self, secret: str) -> None:
        """Remove a secret from all messages, also from earlier ones."""
        if secret and secret not in self.secrets:
            self.secrets.append(secret)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(map(self._clean, self._findings))

    def _clean(self, finding: Diagnostic) -> Diagnostic:
        hint, path = (None if text is None else self.clean(text) for text in (finding.hint, finding.path))
        return replace(finding, message=self.clean(finding.message), hint=hint, path=path)

    def clean(self, text: str) -> str:
        """`text` without known secrets, and without anything that looks like one."""
        return redact_line(redact(TOKEN.sub(HIDDEN, text), self.secrets))


def shorten(text: str, longest: int = 60) -> str:
    """A text on one line, short enough for a message."""
    return truncate(" ".join(text.split()), longest)
