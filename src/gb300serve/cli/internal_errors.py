"""Internal errors: one line for the user, the traceback in a file. Loaded only when one happens."""

import sys
import tempfile
import traceback

from gb300serve import __version__
from gb300serve.cli.console import TerminalConsole

EXIT_CODE = 70


def report(console: TerminalConsole) -> int:
    """Write the traceback of the exception being handled where the user can find it."""
    with tempfile.NamedTemporaryFile("w", prefix="gb300serve-bug-", suffix=".txt", delete=False) as file:
        file.write(f"gb300serve {__version__}, Python {sys.version}\n{traceback.format_exc()}")
    kind = sys.exc_info()[0]
    console.message(f"gb300serve: internal error ({kind.__name__ if kind else '?'}); the traceback is in {file.name}")
    return EXIT_CODE
