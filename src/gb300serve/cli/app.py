"""The command tree, and the one place where errors become exit codes."""

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
    "list": "List lanes and their releases.",
    "show": "Print a release as a self-contained recipe.",
    "compile": "Print the docker run command of a release, or another format.",
    "fit": "Predict whether a release fits in memory, before any download.",
    "diff": "Compare two releases.",
    "lint": "Check recipes without a GPU.",
    "pin": "Write the pinned command of a release.",
    "doctor": "Check whether this machine can run a release.",
    "up": "Launch a release and watch it until it is ready.",
    "unit": "Print a systemd service for a lane.",
    "status": "Show the state of every lane.",
    "probe": "Send requests to a lane and check the answers.",
    "logs": "Print the log of a lane.",
    "down": "Stop a lane.",
    "rollback": "Return to the last good release of a lane.",
    "journal": "Show the changes of the running lanes.",
    "runs": "List or prune the records of launches.",
    "receipts": "Check a boot against the recipe's receipts.",
    "cache": "List, show, seed, pin or verify the kernel-tuning cache.",
    "import": "Convert a docker run command or a container to a recipe.",
    "diagnose": "Explain a boot log.",
    "rules": "Explain the rules of lint and the checks of doctor.",
    "schema": "Print the JSON Schema of recipes and sites.",
    "help": "Show a guide, or the options of a command.",
}

_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))


class InterruptError(Gb300Error):
    """Ctrl-C before anything was started that could keep running."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("interrupted")


class OnDemand(TyperGroup):
    """Loads the module of a command only when it runs, which keeps start-up fast."""

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
            raise InterruptError from error  # typer exits without a message
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
    command.commands = dict.fromkeys(COMMANDS)  # type: ignore[attr-defined] # typer suggests one of them for a misspelt name
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
        if error.errno not in _NO_ROOM or error.filename is not None:  # not standard output, which `--help` writes
            return _report_internal_error(console)
        show_error(OutputError(error), console)
        return OutputError.exit_code
    except Exception:  # noqa: BLE001 - the outermost boundary
        return _report_internal_error(console)
    return code if isinstance(code, int) else 0


def _report_internal_error(console: TerminalConsole) -> int:
    from gb300serve.cli.internal_errors import report  # rare, and start-up is fast without it

    return report(console)


def show_error(error: Gb300Error, console: TerminalConsole) -> None:
    """Print the findings, the message, its details and the hint."""
    for line in text_lines(error.diagnostics):
        console.message(line, "dim" if line.startswith("    ") else None)
    console.message(f"gb300serve: {error.message}", "error")
    console.messages((f"    {line}" for line in error.details), "dim")
    if error.hint:
        console.message("  hint: " + error.hint.replace("\n", "\n        "))


def main() -> NoReturn:
    """The program: `gb300serve` and `python -m gb300serve`."""
    sys.stdout, sys.stderr = _open_stream(sys.stdout), _open_stream(sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # The same bytes in every locale; a file name that is not UTF-8 is escaped.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    environment = read_environment()
    console = TerminalConsole(sys.stdout, sys.stderr, no_color=environment.no_color)
    code = invoke(sys.argv[1:], console, (environment, console))
    with suppress(OSError):  # the reader is gone, or the disk is full, which was reported
        sys.stdout.flush()
    # The interpreter's shutdown takes 18 ms; files and connections are closed already.
    os._exit(code)


def _open_stream(stream: TextIO | None) -> TextIO:
    """For a stream that the caller closed (`>&-`), Python has None: output to it is discarded."""
    return Path(os.devnull).open("w", encoding="utf-8") if stream is None else stream
