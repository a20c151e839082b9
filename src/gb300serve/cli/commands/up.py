"""`gb300serve up`."""

from dataclasses import replace as replace_fields
from typing import Annotated

import typer

from gb300serve.app.launch import LaunchRequest, launch_and_watch, only_simulated, show_steps
from gb300serve.app.services import SIM_SPEED, Services
from gb300serve.app.workspace import workspace
from gb300serve.cli.parameters import On, Reason, RecipeDirs, Ref, Sets, SimFault, SimSpeed, SiteFile, Station
from gb300serve.cli.views.boot import SIMULATED
from gb300serve.simulator.station import Rehearsal


def run(
    ctx: typer.Context,
    ref: Ref,
    on: On = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Do not watch; the restart policy is not applied.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace another release of the lane; it is kept.")
    ] = False,
    steps_only: Annotated[bool, typer.Option("--show-steps", help="Print the steps and do nothing.")] = False,
    stack_dump: Annotated[
        bool, typer.Option("--stack-dump", help="Show where an engine stands that is stuck (py-spy).")
    ] = False,
    reason: Reason = None,
    sets: Sets = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    sim_speed: SimSpeed = SIM_SPEED,
    sim_fault: SimFault = None,
) -> int:
    """Launch a release, watch its boot until it serves, then show its log until Ctrl-C (the lane keeps running)."""
    space = workspace(ctx, recipes, site, station)
    rehearsal = Rehearsal(sim_speed, sim_fault)
    only_simulated(rehearsal, on or "docker")
    services = Services(space, rehearsal)
    launch = replace_fields(services.launch(ref, sets, on or "docker"), stack_dump=stack_dump)
    space.say_notes()
    if launch.on == "sim":
        space.console.message(SIMULATED, "warning")
    words = f"up {ref}{' --replace' if replace else ''}"
    asked = LaunchRequest(launch, "up", words, replace=replace, detach=detach, reason=reason)
    return show_steps(asked, services) if steps_only else launch_and_watch(asked, services)
