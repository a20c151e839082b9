"""`gb300serve journal`."""

from collections.abc import Iterator
from typing import Annotated

import typer

from gb300serve.app.services import Services
from gb300serve.app.workspace import workspace
from gb300serve.cli.parameters import Json, RecipeDirs, SiteFile, Station
from gb300serve.core.errors import MachineError
from gb300serve.journal.journal import JournalContents, JournalEntry
from gb300serve.lifecycle.launch import moment
from gb300serve.lifecycle.recorder import named

SCHEMA = "gb300serve.journal/1"


class JournalUnreadableError(MachineError):
    """The journal exists but cannot be read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}", hint="check its permissions")


def run(
    ctx: typer.Context,
    last: Annotated[
        int | None, typer.Option("--tail", "-n", min=0, help="Show only the last entries.", show_default=False)
    ] = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Show the changes of the running lanes: when (UTC), by whom, from what to what, and the outcome."""
    space = workspace(ctx, recipes, site, station)
    contents = _read(Services(space))
    entries = contents.entries[max(0, len(contents.entries) - last) if last is not None else 0 :]
    if json:
        shown = [entry.as_json() for entry in entries]
        space.console.document({"schema": SCHEMA, "entries": shown, "torn": list(contents.torn)})
        return 0
    for entry in entries:
        for line in _lines(entry):
            space.console.result(line)
    if not entries:
        space.console.result("no entries")
    if contents.torn:
        space.console.message(f"incomplete lines of interrupted writes: {len(contents.torn)}", "warning")
    return 0


def _read(services: Services) -> JournalContents:
    try:
        return services.journal.read()
    except OSError as error:
        raise JournalUnreadableError(str(services.journal.path), error.strerror or str(error)) from error


def _lines(entry: JournalEntry) -> Iterator[str]:
    where = " on the simulated Station" if entry.on == "sim" else ""
    where += f" of {entry.station}" if where and entry.station else f" on {entry.station}" if entry.station else ""
    yield f"{moment(entry.at)}  {entry.verb}{where}: {entry.result}, requested by {entry.by}"
    yield f"    {named(entry.before)} → {named(entry.after)}"
    if entry.said:
        yield f"    {entry.said}"
    if entry.reason:
        yield f"    reason: {entry.reason}"
    if entry.run:
        yield f"    run {entry.run}"
