"""`gb300serve rollback`."""

from typing import Annotated

import typer

from gb300serve.app.launch import launch_and_watch, only_simulated, show_steps
from gb300serve.app.rollback import asked_for, sought
from gb300serve.app.services import SIM_SPEED, Services
from gb300serve.app.workspace import workspace
from gb300serve.cli.parameters import On, Reason, RecipeDirs, SimFault, SimSpeed, SiteFile, Station
from gb300serve.cli.views.boot import SIMULATED
from gb300serve.simulator.station import Rehearsal

Goal = Annotated[
    str | None,
    typer.Argument(metavar="[LANE|REF]", help="A lane, or the release to return to.", show_default=False),
]


def run(
    ctx: typer.Context,
    goal: Goal = None,
    on: On = None,
    steps_only: Annotated[bool, typer.Option("--show-steps", help="Print the steps and do nothing.")] = False,
    reason: Reason = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    sim_speed: SimSpeed = SIM_SPEED,
    sim_fault: SimFault = None,
) -> int:
    """Return to the last release of the lane that was READY: say what is going to be done, do it, and see it serve.

    What serves is stopped and kept. When the other one fails, it is put back.
    """
    space = workspace(ctx, recipes, site, station)
    rehearsal = Rehearsal(sim_speed, sim_fault)
    if on is not None:
        only_simulated(rehearsal, on)
    services = Services(space, rehearsal)
    found = sought(goal, services, on)
    only_simulated(rehearsal, found.on)
    asked = asked_for(found, services, reason)
    if asked.launch.on == "sim":
        space.console.message(SIMULATED, "warning")
    return show_steps(asked, services) if steps_only else launch_and_watch(asked, services)
