"""The port through which use cases report what happens; `cli.console` prints it."""

from collections.abc import Iterable
from typing import Protocol

from gb300serve.core.diagnostics import Diagnostic


class Console(Protocol):
    """Messages for the user. Results are returned to the command, never printed by a use case."""

    def hide(self, secrets: Iterable[str]) -> None:
        """Leave these values out of everything that is printed from now on."""

    def message(self, text: str, style: str | None = None) -> None:
        """One line; `style` is error, warning, note, good, dim or bold."""

    def messages(self, texts: Iterable[str], style: str | None = None) -> None:
        """Several lines."""

    def diagnostics(self, found: Iterable[Diagnostic], style: str | None = None) -> None:
        """Findings with their place, the line itself and what to do."""
