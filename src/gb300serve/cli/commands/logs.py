"""`gb300serve logs`."""

from typing import Annotated

import typer

from gb300serve.app.actions import Invocation, suggesting
from gb300serve.app.hosts import Hosts
from gb300serve.app.lanes import find_lane, held_secrets
from gb300serve.app.state import StateDirectory
from gb300serve.cli.parameters import On, OptionalRef, RecipeDirs, SiteFile, Station, open_workspace
from gb300serve.lifecycle.logs import logs


def run(
    ctx: typer.Context,
    ref: OptionalRef = None,
    on: On = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the lane ends or Ctrl-C.")] = False,
    lines: Annotated[
        int | None, typer.Option("--tail", "-n", min=0, help="The last lines only.", show_default=False)
    ] = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
) -> int:
    """Print a lane's log since its last start, without the values of its secrets."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    with suggesting(Invocation(ref or "", on, workspace.options)):
        host, container = find_lane("logs", ref, workspace, Hosts(workspace), on)
        console.hide(held_secrets(container, StateDirectory(workspace)))
        for line in logs(host.backend, container, tail=lines, follow=follow):
            console.result(line.text)
    return 0
