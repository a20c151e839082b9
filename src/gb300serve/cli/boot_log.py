"""A boot log that the command line names."""

from collections.abc import Iterator

from gb300serve.cli.standard_input import standard_input
from gb300serve.core.errors import CommandLineError
from gb300serve.core.files import expanded


class LogUnreadableError(CommandLineError):
    """The log cannot be opened."""

    def __init__(self, path: str, reason: str, *, runs: str | None = None) -> None:
        run = f", a run (a directory's name below {runs})" if runs else ""
        super().__init__(f"{path}: {reason}", hint=f"name a log file{run}, or - for standard input")


def read_log(file: str) -> Iterator[str]:
    """Its lines as they come; `-` is standard input."""
    try:
        source = standard_input().fileno() if file == "-" else expanded(file)
        # A carriage return does not end a line: numbers are those of `grep -n`.
        with open(source, encoding="utf-8", errors="replace", newline="\n") as log:  # noqa: PTH123 - standard input has no path
            yield from log
    except OSError as error:
        raise LogUnreadableError(file, error.strerror or str(error)) from error
