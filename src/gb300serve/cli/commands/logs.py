"""`gb300serve logs`."""

from typing import Annotated

import typer

from gb300serve.app.lanes import held_secrets, the_lane
from gb300serve.app.services import Services
from gb300serve.app.workspace import workspace
from gb300serve.cli.parameters import On, OptionalRef, RecipeDirs, SiteFile, Station
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
    space = workspace(ctx, recipes, site, station)
    services = Services(space)
    place, container = the_lane("logs", ref, services, on)
    space.console.hide(held_secrets(container, services))
    for line in logs(services.backend(place), container, tail=lines, follow=follow):
        space.console.result(line.text)
    return 0
