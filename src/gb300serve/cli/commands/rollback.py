"""`gb300serve rollback`."""

from functools import partial
from typing import Annotated

import typer

from gb300serve.app.actions import Invocation, suggesting
from gb300serve.app.hosts import SIM_SPEED, Hosts
from gb300serve.app.launch import LaunchRequest, launch_and_watch, refuse_rehearsal, show_steps
from gb300serve.app.launchable import prepare_run
from gb300serve.app.rollback import find_target, rollback_costs
from gb300serve.app.state import StateDirectory
from gb300serve.cli.parameters import On, Reason, RecipeDirs, SimFault, SimSpeed, SiteFile, Station, open_workspace
from gb300serve.cli.views.boot import SIMULATED, BootView
from gb300serve.cli.views.doctor import document
from gb300serve.simulator.station import Rehearsal

Goal = Annotated[
    str | None, typer.Argument(metavar="[LANE|REF]", help="A lane, or the release to return to.", show_default=False)
]


def run(
    ctx: typer.Context,
    goal: Goal = None,
    on: On = None,
    steps_only: Annotated[bool, typer.Option("--show-steps", help="Print the steps without executing them.")] = False,
    reason: Reason = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    sim_speed: SimSpeed = SIM_SPEED,
    sim_fault: SimFault = None,
) -> int:
    """Return to the last release of the lane that was READY, and watch its boot.

    The running container is stopped and kept. If the rollback fails, that container is started again.
    """
    workspace, console = open_workspace(ctx, recipes, site, station)
    rehearsal = Rehearsal(sim_speed, sim_fault)
    if on is not None:
        refuse_rehearsal(rehearsal, on)
    hosts, state = Hosts(workspace, rehearsal), StateDirectory(workspace)
    with suggesting(Invocation(on=on, options=workspace.options)):
        found = find_target(goal, workspace, hosts, state, on)
    refuse_rehearsal(rehearsal, found.on)
    with suggesting(Invocation(found.record.ref, found.on, workspace.options)):
        prepared = prepare_run(workspace, hosts, state.runs.directory, found.record, found.on)
    with suggesting(prepared.invocation):
        host = hosts.at(found.on, prepared.launch.plan)
        request = LaunchRequest(
            prepared,
            "rollback",
            f"rollback {found.record.ref}",
            document,
            replace=True,
            follow=False,
            names_back=True,
            reason=reason,
            preamble=tuple(rollback_costs(found, prepared, host, state)),
        )
        if found.on == "sim":
            console.message(SIMULATED, "warning")
        if steps_only:
            console.results(show_steps(request, hosts, state))
            return 0
        return launch_and_watch(request, hosts, state, partial(BootView, console, prepared.invocation))
