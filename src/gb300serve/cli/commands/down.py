"""`gb300serve down`."""

from typing import Annotated

import typer

from gb300serve.cli.boot_view import BootView
from gb300serve.cli.lanes import the_lane
from gb300serve.cli.parameters import On, OptionalRef, RecipeDirs, SiteFile
from gb300serve.cli.services import Services
from gb300serve.cli.workspace import workspace
from gb300serve.lifecycle.down import Downed, down


def run(
    ctx: typer.Context,
    ref: OptionalRef = None,
    on: On = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the container too: its log goes with it.")] = False,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Seconds until it is killed.", show_default=False)
    ] = None,
    site: SiteFile = None,
    recipes: RecipeDirs = None,
) -> int:
    """Stop a lane and keep its container: starting that again takes four to five minutes instead of eight."""
    space = workspace(ctx, recipes, site)
    services = Services(space)
    place, container = the_lane("down", ref, services, on)
    view = BootView(space.console, {}, simulated=place == "sim")
    done = down(container, services.tools(place, view.show), remove=remove, timeout=timeout)
    space.console.message(_said(done))
    return 0


def _said(done: Downed) -> str:
    name = done.container.name
    if not done.was_running:
        return f"{name} was not running" + ("; removed" if done.removed else "")
    how = (
        "was killed: it did not answer the signal in time"
        if done.killed
        else f"ended with exit code {done.container.exit_code}"
    )
    return f"{name} {how}; {'removed' if done.removed else 'kept'}"
