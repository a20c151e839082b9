"""`gb300serve doctor`."""

from typing import Annotated

import typer

from gb300serve.app.doctor import Doctor
from gb300serve.app.hosts import Hosts
from gb300serve.app.state import StateDirectory
from gb300serve.cli.parameters import Json, On, RecipeDirs, Sets, SiteFile, Station, open_workspace
from gb300serve.cli.views.boot import SIMULATED
from gb300serve.cli.views.doctor import document, lines
from gb300serve.preflight.run import blocking, judge

Release = Annotated[
    str | None, typer.Argument(metavar="[REF]", help="A release; without it, the host alone.", show_default=False)
]


def run(
    ctx: typer.Context,
    ref: Release = None,
    on: On = None,
    replace: Annotated[bool, typer.Option("--replace", help="Check as `up --replace` would.")] = False,
    sets: Sets = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Check whether this machine can run a release now, and print what to fix. Changes nothing."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    where = on or "docker"
    doctor = Doctor(workspace, Hosts(workspace), StateDirectory(workspace), where)
    subject = doctor.host() if ref is None else doctor.examine(ref, sets or (), replace=replace)
    found = judge(subject)
    if where == "sim":
        console.message(SIMULATED, "warning")
    if json:
        console.document(document(subject, found, where))
    else:
        workspace.print_notes()
        console.results(lines(subject, found))
    blocks = blocking(found)
    if blocks:
        what = "one check blocks" if len(blocks) == 1 else f"{len(blocks)} checks block"
        console.message(f"{what} {ref or 'every launch'} on this machine", "error")
    return 6 if blocks else 0
