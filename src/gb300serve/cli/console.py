"""Results on stdout, everything else on stderr; colour only on a terminal."""

import json
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TextIO

from gb300serve.cli.views.diagnostics import text_lines
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.errors import MachineError
from gb300serve.core.redaction import redact
from gb300serve.core.text import printable, shorten_words
from gb300serve.core.values import indented_json

# JSON escapes only the control characters below the space; terminals act on these too, and on marks of direction.
_HIGH_CONTROL = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class OutputError(MachineError):
    """Standard output cannot be written: a full disk behind a redirection, a failed device."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"the result cannot be written: {error.strerror or error}",
            hint="check where standard output is redirected to",
        )


class TerminalConsole:
    """`app.environment.Console` on two text streams: `out` for results, `err` for messages."""

    def __init__(self, out: TextIO = sys.stdout, err: TextIO = sys.stderr, *, no_color: bool = False) -> None:
        self.out = out
        self.err = err
        self.no_color = no_color
        self._hidden: tuple[str, ...] = ()

    def hide(self, secrets: Iterable[str]) -> None:
        """Redact these values in all later output: an engine may log them."""
        self._hidden = (*self._hidden, *secrets)

    def result(self, text: str) -> None:
        self._write(printable(self._without_secrets(text)))

    def results(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.result(text)

    def document(self, value: dict[str, Any]) -> None:
        """The result as JSON: characters outside ASCII stay readable, control characters are escaped."""
        text = _HIGH_CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", indented_json(value))
        self._write(self._without_secrets(text))

    def line(self, value: dict[str, Any]) -> None:
        """One JSON object on a line of its own."""
        self._write(self._without_secrets(json.dumps(value, default=str)))

    def message(self, text: str, style: str | None = None) -> None:
        """A line of progress or an explanation. If it cannot be written (`up … 2>&1 | head`), the command continues."""
        shown = shorten_words(printable(self._without_secrets(text)))
        with suppress(OSError):
            if style and not self.no_color and self.err.isatty():
                from gb300serve.cli.colour import print_styled  # importing rich takes 40 ms

                print_styled(shown, style, self.err)
            else:
                print(shown, file=self.err, flush=True)

    def messages(self, texts: Iterable[str], style: str | None = None) -> None:
        for text in texts:
            self.message(text, style)

    def diagnostics(self, found: Iterable[Diagnostic], style: str | None = None) -> None:
        """Findings with their place, the source line and the hint."""
        self.messages(text_lines(found), style)

    def _without_secrets(self, text: str) -> str:
        return redact(text, self._hidden) if self._hidden else text

    def _write(self, text: str) -> None:
        try:
            print(text, file=self.out, flush=True)
        except BrokenPipeError:
            raise  # not an error: cli.app exits with 0
        except OSError as error:
            raise OutputError(error) from error
