"""`gb300serve up`."""

from dataclasses import replace as replace_fields
from functools import partial
from typing import Annotated

import typer

from gb300serve.app.actions import Invocation, suggesting
from gb300serve.app.hosts import SIM_SPEED, Hosts
from gb300serve.app.launch import LaunchRequest, launch_and_watch, refuse_rehearsal, show_steps
from gb300serve.app.launchable import prepare
from gb300serve.app.state import StateDirectory
from gb300serve.cli.console import TerminalConsole
from gb300serve.cli.parameters import (
    On,
    Reason,
    RecipeDirs,
    Ref,
    Sets,
    SimFault,
    SimSpeed,
    SiteFile,
    Station,
    open_workspace,
)
from gb300serve.cli.views.boot import SIMULATED, BootEvents, BootView
from gb300serve.cli.views.doctor import document
from gb300serve.core.errors import CommandLineError
from gb300serve.simulator.station import Rehearsal

Detach = Annotated[
    bool, typer.Option("--detach", "-d", help="Return without watching the boot; the restart policy is not applied.")
]
Wait = Annotated[bool, typer.Option("--wait", "-w", help="Return when it is READY; the restart policy is applied.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print events as JSON lines.")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace another release of the lane; its container is kept.")]
StackDump = Annotated[bool, typer.Option("--stack-dump", help="If the engine hangs, print its stack (py-spy).")]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="S", min=1, help="Exit with 8 if it is not READY within S seconds.", show_default=False
    ),
]


class WaitOrDetachError(CommandLineError):
    """`--wait` together with `--detach`."""

    def __init__(self) -> None:
        super().__init__("--wait and --detach cannot be combined", hint="leave out one of them")


def run(
    ctx: typer.Context,
    ref: Ref,
    on: On = None,
    detach: Detach = False,
    wait: Wait = False,
    timeout: Timeout = None,
    replace: Replace = False,
    steps_only: Annotated[bool, typer.Option("--show-steps", help="Print the steps without executing them.")] = False,
    stack_dump: StackDump = False,
    reason: Reason = None,
    sets: Sets = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    sim_speed: SimSpeed = SIM_SPEED,
    sim_fault: SimFault = None,
    json: JsonLines = False,
) -> int:
    """Launch a release, watch its boot until it is ready, then print its log. Ctrl-C leaves the lane running.

    Without a terminal it does the same: it ends when the lane ends. A script takes --wait or --detach.
    """
    workspace, console = open_workspace(ctx, recipes, site, station)
    where, overrides = on or "docker", tuple(sets or ())
    hosts = Hosts(workspace, Rehearsal(sim_speed, sim_fault))
    refuse_rehearsal(hosts.rehearsal, where)
    if wait and detach:
        raise WaitOrDetachError
    with suggesting(Invocation(ref, where, workspace.options, overrides)):
        prepared = prepare(workspace, hosts, ref, overrides, where)
        workspace.print_notes()
        if where == "sim":
            console.message(SIMULATED, "warning")
        launch = replace_fields(prepared.launch, stack_dump=stack_dump, timeout=timeout)
        request = LaunchRequest(
            replace_fields(prepared, launch=launch),
            "up",
            f"up {ref}{' --replace' if replace else ''}",
            document,
            replace=replace,
            detach=detach,
            follow=not wait,
            reason=reason,
        )
        state = StateDirectory(workspace)
        if steps_only:
            console.results(show_steps(request, hosts, state))
            return 0
        return _launch(request, hosts, state, console, json=json)


def _launch(
    request: LaunchRequest, hosts: Hosts, state: StateDirectory, console: TerminalConsole, *, json: bool
) -> int:
    if not json:
        return launch_and_watch(request, hosts, state, partial(BootView, console, request.invocation))
    with BootEvents(console, request.launch) as events:
        return launch_and_watch(request, hosts, state, events.begin)
