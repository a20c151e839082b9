"""Results on stdout, everything else on stderr; colour only on a terminal."""

import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TextIO

from gb300serve.cli.views.diagnostics import text_lines
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.errors import MachineError
from gb300serve.core.redaction import redact
from gb300serve.core.text import printable, shorten_words
from gb300serve.core.values import indented_json

# JSON escapes the control characters below the blank and leaves these, which steer terminals too.
_HIGH_CONTROL = re.compile(r"[\x7f-\x9f]")

PrintStyled = Callable[[str, str, TextIO], None]


class OutputError(MachineError):
    """Standard output cannot be written: a full disk behind a redirection, a failed device."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"the result cannot be written: {error.strerror or error}",
            hint="check where standard output is redirected to",
        )


class TerminalConsole:
    """`app.console.Console` on two text streams: `out` for results, `err` for progress and messages.

    `print_styled` (cli.colour) is used where `err` is a terminal that may be coloured; without it nothing is coloured.
    """

    def __init__(
        self,
        out: TextIO = sys.stdout,
        err: TextIO = sys.stderr,
        *,
        no_color: bool = False,
        print_styled: PrintStyled | None = None,
    ) -> None:
        self.out = out
        self.err = err
        self.no_color = no_color
        self._print_styled = print_styled
        self._hidden: tuple[str, ...] = ()

    def hide(self, secrets: Iterable[str]) -> None:
        """Leave these values out of everything that is printed from now on: an engine may log them."""
        self._hidden = (*self._hidden, *secrets)

    def result(self, text: str) -> None:
        """A line (or lines) of the command's result."""
        self._write(printable(self._without_secrets(text)))

    def results(self, texts: Iterable[str]) -> None:
        """Several of them."""
        for text in texts:
            self.result(text)

    def document(self, value: dict[str, Any]) -> None:
        """The result as JSON: characters outside ASCII stay readable, control characters are escaped."""
        text = _HIGH_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", indented_json(value))
        self._write(self._without_secrets(text))

    def message(self, text: str, style: str | None = None) -> None:
        """A line of progress or an explanation.

        A message that cannot be written stops nothing: a launch whose reader is gone (`up … 2>&1 | head`) continues.
        """
        shown = shorten_words(printable(self._without_secrets(text)))
        with suppress(OSError):
            if style and self._print_styled and not self.no_color and self.err.isatty():
                self._print_styled(shown, style, self.err)
            else:
                print(shown, file=self.err, flush=True)

    def messages(self, texts: Iterable[str], style: str | None = None) -> None:
        """Several of them."""
        for text in texts:
            self.message(text, style)

    def diagnostics(self, found: Iterable[Diagnostic], style: str | None = None) -> None:
        """Findings: the place, the line itself, what to do."""
        self.messages(text_lines(found), style)

    def _without_secrets(self, text: str) -> str:
        return redact(text, self._hidden) if self._hidden else text

    def _write(self, text: str) -> None:
        try:
            print(text, file=self.out, flush=True)
        except BrokenPipeError:
            raise  # a reader that is gone is not an error: cli/app
        except OSError as error:
            raise OutputError(error) from error
