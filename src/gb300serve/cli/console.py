"""Results to stdout, everything else to stderr; colour only on a terminal."""

import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TextIO

from gb300serve.core.errors import MachineError
from gb300serve.core.redaction import redact
from gb300serve.core.text import printable, shorten_words
from gb300serve.core.values import indented_json

# JSON escapes the control characters below the blank and leaves these, which steer terminals too.
_HIGH_CONTROL = re.compile(r"[\x7f-\x9f]")
_COLOURS = {"error": "31", "warning": "33", "note": "36", "good": "32", "dim": "2", "bold": "1"}


class OutputError(MachineError):
    """Standard output takes nothing more: a full disk behind a redirection, a device that failed."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"the result cannot be written: {error.strerror or error}", hint="see where standard output goes"
        )


class Console:
    """`out` takes results, `err` progress and messages; both may be any text stream."""

    def __init__(self, out: TextIO = sys.stdout, err: TextIO = sys.stderr, *, no_color: bool = False) -> None:
        self.out = out
        self.err = err
        self.no_color = no_color
        self._hidden: tuple[str, ...] = ()

    def hide(self, secrets: Iterable[str]) -> None:
        """Nothing that is said from now on shows these values: an engine may print them."""
        self._hidden = (*self._hidden, *secrets)

    def result(self, text: str) -> None:
        """A line (or lines) of the command's result."""
        self._write(printable(self._without_secrets(text)))

    def document(self, value: dict[str, Any]) -> None:
        """The result as JSON: characters outside ASCII stay readable, control characters are escaped."""
        text = _HIGH_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", indented_json(value))
        self._write(self._without_secrets(text))

    def message(self, text: str, style: str | None = None) -> None:
        """A line of progress or an explanation.

        Nothing stops because it cannot be said: a launch whose reader has gone (`up … 2>&1 | head`) is carried through.
        """
        with suppress(OSError):
            print(
                self.styled(shorten_words(printable(self._without_secrets(text))), style, self.err),
                file=self.err,
                flush=True,
            )

    def messages(self, texts: Iterable[str], style: str | None = None) -> None:
        """Several of them."""
        for text in texts:
            self.message(text, style)

    def styled(self, text: str, style: str | None, stream: TextIO) -> str:
        """`text` in a style where `stream` is a terminal that may be coloured."""
        if style is None or self.no_color or not stream.isatty():
            return text
        return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m"

    def _without_secrets(self, text: str) -> str:
        return redact(text, self._hidden) if self._hidden else text

    def _write(self, text: str) -> None:
        try:
            print(text, file=self.out, flush=True)
        except BrokenPipeError:
            raise  # a reader that has gone is no error: cli/app
        except OSError as error:
            raise OutputError(error) from error
