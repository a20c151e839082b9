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
from gb300serve.core.errors import Action, MachineError
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.down import StopResult
from gb300serve.lifecycle.launch import CHANGED, describe_container, release_of


class OnlyChangedError(MachineError):
    """`down v14 --remove`, but only `v14+set` exists: it is another launch and is not removed."""

    def __init__(self, ref: str, container: Container) -> None:
        message = f"no container of {ref} exists; {describe_container(container)} was changed by --set"
        super().__init__(message, suggest=(Action("down", "remove it", ("--remove",), ref=release_of(container)),))


def run(
    ctx: typer.Context,
    ref: OptionalRef = None,
    on: On = None,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove",
            help="Remove the container and its log, also of the only lane that is stopped; with REF, also those of "
            "its failed boots.",
        ),
    ] = False,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds before SIGKILL.", show_default=False)] = None,
    reason: Reason = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
) -> int:
    """Stop a lane and keep its container: starting it again takes 4 to 5 minutes instead of 8."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    invocation = Invocation(ref or "", on, workspace.options)
    with suggesting(invocation):
        host, container = find_lane("down", ref, Hosts(workspace), on, stopped=remove)
        if remove and ref and release_of(container).endswith(CHANGED) and not ref.endswith(CHANGED):
            raise OnlyChangedError(ref, container)
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
    for survivor in done.residue.survivors:
        yield f"GPU memory is not free: {survivor}"
    if done.residue.shared:
        yield f"left in /dev/shm: {' '.join(done.residue.shared)}"
