"""`gb300serve runs`."""

from typing import Annotated, Literal

import typer

from gb300serve.app.hosts import Hosts
from gb300serve.app.runs import KeptRun, PruneLimits, kept_runs, prunable, remove
from gb300serve.app.state import StateDirectory
from gb300serve.cli.console import TerminalConsole
from gb300serve.cli.parameters import Json, RecipeDirs, SiteFile, Station, open_workspace
from gb300serve.cli.views.diagnostics import table
from gb300serve.core.errors import CommandLineError, MachineError
from gb300serve.core.text import gib
from gb300serve.journal.journal import format_time

SCHEMA = "gb300serve.runs/1"
GIGABYTE = 1000**3


class NoLimitError(CommandLineError):
    """`runs prune` without a limit would remove nothing or everything."""

    def __init__(self) -> None:
        super().__init__("runs prune requires a limit", hint="add --days N, --count N or --size GB")


class RunNotRemovedError(MachineError):
    """The directory of a run cannot be removed."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"{error.filename} cannot be removed: {error.strerror}", hint="check its permissions")


def run(
    ctx: typer.Context,
    action: Annotated[
        Literal["list", "prune"], typer.Argument(metavar="[list|prune]", help="Show the runs, or remove old ones.")
    ] = "list",
    days: Annotated[float | None, typer.Option(min=0, help="Keep runs of the last N days.", metavar="N")] = None,
    count: Annotated[int | None, typer.Option(min=0, help="Keep the last N runs.", metavar="N")] = None,
    size: Annotated[float | None, typer.Option(min=0, help="Keep at most so many GB.", metavar="GB")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Remove; without it, prune only shows what it would.")
    ] = False,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Show the runs that are kept, with their sizes; remove those beyond a limit with the containers of failed boots.

    The last good run of a lane, the run that rollback returns to, and whatever runs always stay.
    """
    workspace, console = open_workspace(ctx, recipes, site, station)
    limits = PruneLimits(days, count, None if size is None else round(size * GIGABYTE))
    if action == "prune" and not limits.are_given:
        raise NoLimitError
    hosts, state = Hosts(workspace), StateDirectory(workspace)
    runs = kept_runs(state, hosts)
    shown = prunable(runs, limits, state.clock.now()) if action == "prune" else runs
    removed = action == "prune" and yes
    if json:
        total = sum(run.bytes for run in runs)
        head = {"schema": SCHEMA, "bytes": total, "removed": removed}
        console.document({**head, "runs": [run.as_json() for run in shown]})
    if removed:
        _remove(shown, state, hosts, console)
    elif not json:
        _show(shown, console)
        if action == "prune" and shown:
            console.message("nothing was removed; --yes removes these runs", "dim")
    return 0


def _remove(runs: tuple[KeptRun, ...], state: StateDirectory, hosts: Hosts, console: TerminalConsole) -> None:
    try:
        console.messages(remove(runs, state, hosts))
    except OSError as error:
        raise RunNotRemovedError(error) from error


def _show(runs: tuple[KeptRun, ...], console: TerminalConsole) -> None:
    if not runs:
        console.result("no runs")
        return
    header = ("RUN", "RELEASE", "ON", "STATE", "BEGAN (UTC)", "SIZE", "STAYS BECAUSE")
    rows = [
        [
            kept.record.run,
            kept.record.ref,
            kept.record.on,
            kept.record.state,
            format_time(kept.record.began)[:19],
            gib(kept.bytes),
            kept.needed or "-",
        ]
        for kept in runs
    ]
    console.results(table(header, rows))
    console.result(f"{len(runs)} run{'s' * (len(runs) != 1)}, {gib(sum(kept.bytes for kept in runs))}")
