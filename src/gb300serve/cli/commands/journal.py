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
    """The file is there and cannot be read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}", hint="see who may read there")


def run(
    ctx: typer.Context,
    last: Annotated[
        int | None, typer.Option("--tail", "-n", min=0, help="The last entries only.", show_default=False)
    ] = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Show what changed what serves: when (UTC), who asked, from what to what, and what came of it."""
    space = workspace(ctx, recipes, site, station)
    story = _read(Services(space))
    entries = story.entries if last is None else story.entries[len(story.entries) - min(last, len(story.entries)) :]
    if json:
        shown = [entry.as_json() for entry in entries]
        space.console.document({"schema": SCHEMA, "entries": shown, "torn": list(story.torn)})
        return 0
    for entry in entries:
        for line in _lines(entry):
            space.console.result(line)
    if not entries:
        space.console.result("no entry")
    if story.torn:
        space.console.message(f"lines that were cut short while they were written: {len(story.torn)}", "warning")
    return 0


def _read(services: Services) -> JournalContents:
    try:
        return services.journal.read()
    except OSError as error:
        raise JournalUnreadableError(str(services.journal.path), error.strerror or str(error)) from error


def _lines(entry: JournalEntry) -> Iterator[str]:
    where = " on the simulated Station" if entry.on == "sim" else ""
    where += f" of {entry.station}" if where and entry.station else f" on {entry.station}" if entry.station else ""
    yield f"{moment(entry.at)}  {entry.verb}{where}: {entry.result}, asked by {entry.by}"
    yield f"    {named(entry.before)} → {named(entry.after)}"
    if entry.said:
        yield f"    {entry.said}"
    if entry.reason:
        yield f"    reason: {entry.reason}"
    if entry.run:
        yield f"    run {entry.run}"
