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
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow the log until the lane ends or Ctrl-C.")
    ] = False,
    lines: Annotated[
        int | None, typer.Option("--tail", "-n", min=0, help="Print only the last lines.", show_default=False)
    ] = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
) -> int:
    """Print the log of a lane since its last start. Values of its secrets are redacted."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    with suggesting(Invocation(ref or "", on, workspace.options)):
        host, container = find_lane("logs", ref, Hosts(workspace), on)
        console.hide(held_secrets(container, StateDirectory(workspace)))
        console.results(line.text for line in logs(host.backend, container, tail=lines, follow=follow))
    return 0
