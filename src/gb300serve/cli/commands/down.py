"""`gb300serve down`."""

from collections.abc import Iterator
from typing import Annotated

import typer

from gb300serve.app.actions import Invocation, suggesting
from gb300serve.app.down import DownRequest, removed_too, sentence, stop_lane
from gb300serve.app.hosts import Hosts
from gb300serve.app.lanes import find_lane
from gb300serve.app.state import StateDirectory
from gb300serve.cli.parameters import On, OptionalRef, Reason, RecipeDirs, SiteFile, Station, open_workspace
from gb300serve.cli.views.boot import BootView
from gb300serve.lifecycle.down import StopResult


def run(
    ctx: typer.Context,
    ref: OptionalRef = None,
    on: On = None,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove",
            help="Also remove the container and, with REF, those of its failed boots, with their logs.",
        ),
    ] = False,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds before SIGKILL.", show_default=False)] = None,
    reason: Reason = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
) -> int:
    """Stop a lane and keep its container: restarting it takes 4 to 5 minutes instead of 8."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    invocation = Invocation(ref or "", on, workspace.options)
    with suggesting(invocation):
        host, container = find_lane("down", ref, workspace, Hosts(workspace), on)
    invocation = Invocation(ref or "", host.on, workspace.options)
    with suggesting(invocation):
        command = f"down {ref or container.name}"
        request = DownRequest(container, command, remove, remove and ref is not None, timeout, reason)
        view = BootView(console, invocation, {})
        stopped = stop_lane(request, host, StateDirectory(workspace), workspace, view.show)
    done = stopped.done
    console.messages(_left(done), "warning")
    if host.on == "docker" and done.was_running and done.container.gpus and not done.residue.gpu_checked:
        console.message("GPU memory was not checked: nvidia-smi is not available from here", "dim")
    console.messages(map(removed_too, stopped.failed))
    console.message(sentence(done))
    return 0


def _left(done: StopResult) -> Iterator[str]:
    """Residue of the ended engine."""
    for survivor in done.residue.survivors:
        yield f"its GPU memory is not free: {survivor}"
    if done.residue.shared:
        yield f"left in /dev/shm: {' '.join(done.residue.shared)}"
