"""`gb300serve down`."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

import typer

from gb300serve.adapters.system import once
from gb300serve.app.lanes import the_lane
from gb300serve.app.launch_journal import Keeper, alone
from gb300serve.app.services import Services
from gb300serve.app.workspace import workspace
from gb300serve.cli.parameters import On, OptionalRef, Reason, RecipeDirs, SiteFile, Station
from gb300serve.cli.views.boot import BootView
from gb300serve.core.errors import Gb300Error
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.down import Downed, down, remove_failed
from gb300serve.lifecycle.events import Announcement, StepBegan
from gb300serve.lifecycle.launch import command, ref_of, release_of
from gb300serve.lifecycle.steps import Step, StopContainer
from gb300serve.lifecycle.tools import Tools


def run(
    ctx: typer.Context,
    ref: OptionalRef = None,
    on: On = None,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove",
            help="Remove the container too, and with REF those of its failed boots: their logs go with them.",
        ),
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Seconds until it is killed.", show_default=False)
    ] = None,
    reason: Reason = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
) -> int:
    """Stop a lane and keep its container: starting that again takes four to five minutes instead of eight."""
    space = workspace(ctx, recipes, site, station)
    services = Services(space)
    place, container = the_lane("down", ref, services, on)
    view = BootView(space.console, {}, simulated=place == "sim")
    with once(), alone(services.lock(place, f"down {ref or container.name}"), services) as lock:
        keeper = Keeper(services, place, "down", reason)
        keeper.settle()
        stopping = _Stopping(view, place, space.words)
        tools = services.tools(place, stopping.hear, lock)
        try:
            done = down(container, tools, remove=remove, timeout=timeout, remains=services.remains(place))
        except KeyboardInterrupt:
            with tools.uninterrupted():
                raise stopping.interrupted(container, tools, keeper) from None
        failed = remove_failed(container, tools) if remove and ref else ()
        if done.was_running or done.removed:
            said = "; ".join((f"{release_of(done.container)}: {_said(done)}", *map(_removed_too, failed)))
            keeper.enter("removed" if done.removed else "stopped", said)
    space.console.messages(_left(done), "warning")
    if place == "docker" and done.was_running and done.container.gpus and not done.leftovers.gpu_checked:
        unchecked = "whether the GPU's memory is free again was not checked: nvidia-smi cannot be asked from here"
        space.console.message(unchecked, "dim")
    space.console.messages(map(_removed_too, failed))
    space.console.message(_said(done))
    return 0


class DownInterruptedError(Gb300Error):
    """Ctrl-C or SIGTERM before the lane had ended."""

    exit_code = 130

    def __init__(self, said: str, *, status: str, again: str) -> None:
        hint = f"see: {status}; wait for its end: {again}"
        super().__init__(f"interrupted; {said}", hint=hint)


@dataclass
class _Stopping:
    """How far `down` has come."""

    view: BootView
    on: str
    found_by: tuple[str, ...]
    begun: list[Step] = field(default_factory=list)

    def hear(self, announcement: Announcement) -> None:
        if isinstance(announcement, StepBegan):
            self.begun.append(announcement.step)
        self.view.show(announcement)

    def interrupted(self, container: Container, tools: Tools, keeper: Keeper) -> DownInterruptedError:
        """A stop that was asked for cannot be taken back; before it, the restart policy is put back."""
        if any(isinstance(step, StopContainer) for step in self.begun):
            said = f"{container.name} was asked to end, and its end was not waited for"
            keeper.enter_asked_to_end(container.id, f"{release_of(container)}: {said}")
            return self._interrupted(said, container)
        if self.begun:
            tools.backend.set_restart(container.id, container.restart_policy)
        return self._interrupted(f"{container.name} is left as it was", container)

    def _interrupted(self, said: str, container: Container) -> DownInterruptedError:
        status = command("status", on=self.on, found_by=self.found_by)
        again = command("down", ref_of(container), on=self.on, found_by=self.found_by)
        return DownInterruptedError(said, status=status, again=again)


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


def _removed_too(name: str) -> str:
    return f"{name}, set aside after a failed boot, was removed too"


def _left(done: Downed) -> Iterator[str]:
    """What is still there although it has ended."""
    for survivor in done.leftovers.survivors:
        yield f"its memory on the GPU is not free: {survivor}"
    if done.leftovers.shared:
        yield f"made while it ran and left in /dev/shm: {' '.join(done.leftovers.shared)}"
