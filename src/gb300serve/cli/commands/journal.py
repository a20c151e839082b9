"""`gb300serve journal`."""

from collections.abc import Iterator
from typing import Annotated

import typer

from gb300serve.app.state import StateDirectory
from gb300serve.cli.parameters import Json, RecipeDirs, SiteFile, Station, open_workspace
from gb300serve.core.errors import MachineError
from gb300serve.journal.journal import JournalEntry
from gb300serve.lifecycle.launch import display_time
from gb300serve.lifecycle.recorder import lane_names

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
    """Show the changes of the running lanes: time (UTC), user, lanes before and after, and result."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    journal = StateDirectory(workspace).journal
    try:
        contents = journal.read()
    except OSError as error:
        raise JournalUnreadableError(str(journal.path), error.strerror or str(error)) from error
    entries = contents.entries if last is None else contents.entries[max(0, len(contents.entries) - last) :]
    if json:
        shown = [entry.as_json() for entry in entries]
        console.document({"schema": SCHEMA, "entries": shown, "torn": list(contents.torn)})
        return 0
    console.results(line for entry in entries for line in _lines(entry))
    if not entries:
        console.result("no entries")
    if contents.torn:
        console.message(f"incomplete lines of interrupted writes: {len(contents.torn)}", "warning")
    return 0


def _lines(entry: JournalEntry) -> Iterator[str]:
    where = " on the simulated Station" if entry.on == "sim" else ""
    where += f" of {entry.station}" if where and entry.station else f" on {entry.station}" if entry.station else ""
    yield f"{display_time(entry.at)}  {entry.verb}{where}: {entry.result}, requested by {entry.by}"
    yield f"    {lane_names(entry.before)} → {lane_names(entry.after)}"
    if entry.said:
        yield f"    {_one_line(entry.said)}"
    if entry.reason:
        yield f"    reason: {_one_line(entry.reason)}"
    if entry.run:
        yield f"    run {entry.run}"


def _one_line(text: str) -> str:
    """A text of several lines could imitate an entry."""
    return " ".join(text.split())
