"""The command tree, and the one place where errors become exit codes.

A command's module is loaded when that command is asked for: start-up is a feature, and `--help` needs none of them.
"""

import errno
import importlib
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn, TextIO

import typer
from typer._click.core import Command, Context
from typer._click.exceptions import ClickException  # 0.28 vendors click: its errors have no public name
from typer._click.formatting import HelpFormatter
from typer.core import TyperGroup

from gb300serve import __version__
from gb300serve.app.actions import Invocation, render_suggestions
from gb300serve.app.environment import read_environment
from gb300serve.cli.console import OutputError, TerminalConsole
from gb300serve.cli.views.diagnostics import text_lines
from gb300serve.core.errors import Gb300Error

COMMANDS = {
    "list": "Lanes and their releases.",
    "show": "A release, resolved.",
    "compile": "The docker run line of a release, or its plan.",
    "fit": "Whether a release fits the memory, before any download.",
    "diff": "What one release changes against another.",
    "lint": "What is wrong with recipes, without a machine.",
    "pin": "Write the pinned command of a release.",
    "doctor": "Whether this machine can run a release, and what blocks it.",
    "up": "Launch a release and watch it until it serves.",
    "status": "What serves, what boots, what ended.",
    "logs": "A lane's log.",
    "down": "Stop a lane.",
    "rollback": "Return to the last good release of a lane.",
    "journal": "What changed what serves.",
    "receipts": "Whether a boot showed what a good one shows.",
    "cache": "The kernel-tuning cache: list, show, seed, pin, verify.",
    "import": "A recipe from a docker run line or a container.",
    "diagnose": "What a boot log says.",
    "rules": "The rules of lint and the checks of doctor.",
    "schema": "JSON Schema of recipes and sites.",
    "help": "Show a guide, or the options of a command.",
}

_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))


class InterruptError(Gb300Error):
    """Ctrl-C before anything was started that could keep running."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("interrupted")


class OnDemand(TyperGroup):
    """Loads the module of a command when the command is asked for."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - click's signature, here and below
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"gb300serve.cli.commands.{cmd_name}")
        single = typer.Typer(rich_markup_mode=None, add_completion=False)
        single.command(cmd_name)(module.run)
        return typer.main.get_command(single)

    def invoke(self, ctx: Context) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, typer.Abort) as error:
            raise InterruptError from error  # typer would turn it into a silent exit code
        except BrokenPipeError:
            return 0  # the reader of the output is gone

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(cls=OnDemand, name="gb300serve", rich_markup_mode=None, add_completion=False, no_args_is_help=True)


def _version(value: bool) -> None:  # noqa: FBT001 - typer passes an option's value by position
    if value:
        print(f"gb300serve {__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")]


@app.callback()
def options(version: Version = False) -> None:  # noqa: FBT002 - an option of the command line
    """Launch recipes and compile configurations for large models on one NVIDIA GB300."""


def invoke(arguments: list[str], console: TerminalConsole, context: Any) -> int:
    """Run one command line; returns its exit code. Errors are printed, tracebacks go to a file."""
    command = typer.main.get_command(app)
    command.commands = dict.fromkeys(COMMANDS)  # type: ignore[attr-defined] # names for the suggestion of a misspelt one
    try:
        code = command.main(arguments, prog_name="gb300serve", standalone_mode=False, obj=context)
    except ClickException as error:
        error.show(console.err)
        return error.exit_code
    except Gb300Error as error:
        render_suggestions(error, Invocation())
        show_error(error, console)
        return error.exit_code
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:  # not the standard output that `--help` fills
            return _bug(console)
        refused = OutputError(error)
        show_error(refused, console)
        return refused.exit_code
    except Exception:  # noqa: BLE001 - the one boundary: a bug of ours is one line, the traceback is in a file
        return _bug(console)
    return code if isinstance(code, int) else 0


def _bug(console: TerminalConsole) -> int:
    return int(importlib.import_module("gb300serve.cli.internal_errors").report(console))


def show_error(error: Gb300Error, console: TerminalConsole) -> None:
    """The places first, then the message, lines from elsewhere, and what to do, one per line."""
    for line in text_lines(error.diagnostics):
        console.message(line, "dim" if line.startswith("    ") else None)
    console.message(f"gb300serve: {error.message}", "error")
    console.messages((f"    {line}" for line in error.details), "dim")
    if error.hint:
        console.message("  hint: " + error.hint.replace("\n", "\n        "))


def main() -> NoReturn:
    """The program: `gb300serve` and `python -m gb300serve`."""
    sys.stdout, sys.stderr = _opened(sys.stdout), _opened(sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # The same bytes under every locale; a file name that is not UTF-8 is shown escaped, as JSON escapes it.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    environment = read_environment()
    console = TerminalConsole(sys.stdout, sys.stderr, no_color=environment.no_color, print_styled=_print_styled)
    code = invoke(sys.argv[1:], console, (environment, console))
    with suppress(OSError):  # the reader has gone, or the disk behind a redirection is full: that was said
        sys.stdout.flush()
    # Taking a hundred modules apart costs 18 ms of every command, and nothing here waits for it: files and
    # connections are closed by the code that opened them.
    os._exit(code)


def _print_styled(text: str, style: str, stream: TextIO) -> None:
    """Load rich with the first coloured line."""
    importlib.import_module("gb300serve.cli.colour").print_styled(text, style, stream)


def _opened(stream: TextIO | None) -> TextIO:
    """Python has no stream where the caller closed it (`>&-`): what is written there goes nowhere."""
    return Path(os.devnull).open("w", encoding="utf-8") if stream is None else stream
