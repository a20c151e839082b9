"""Whether a launch has what a fault is about: one that it has not would be rehearsed in silence. Pure."""

from collections.abc import Iterable

from gb300serve.core.errors import BackendError, CommandLineError
from gb300serve.engines.registry import engine
from gb300serve.fit.checkpoint import checkpoints
from gb300serve.lifecycle.receipts import patches
from gb300serve.plan.model import Plan
from gb300serve.simulator.engine.faults import FAULTS, faults_of


class NoSuchSimulationError(BackendError):
    """A container that is not there, or not any more."""

    def __init__(self, container: str) -> None:
        super().__init__(f"no simulated container {container}", hint="gb300serve status shows those that there are")


class NameTakenError(BackendError):
    """A name is given once."""

    def __init__(self, name: str, holder: str) -> None:
        super().__init__(
            f"the name {name} is in use by simulated container {holder[:12]}",
            hint="remove or rename that one, or choose another container.name",
        )


class NoSuchImageError(BackendError):
    """An image that this rehearsal leaves out."""

    def __init__(self, image: str) -> None:
        super().__init__(f"{image} is not on the simulated Station", hint="it has every image that is not left out")


class ContainerRunningError(BackendError):
    """Only what has ended can be removed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the simulated container {name} is running", hint="stop it first")


class ShimFailedError(BackendError):
    """The program that runs the stand-in did not come up."""

    def __init__(self, name: str, said: str) -> None:
        super().__init__(
            f"the simulated container {name} did not start: {said or 'its shim ended without a word'}",
            hint="the whole output is in shim.log beside its container.json",
        )


class StationUnwritableError(BackendError):
    """Its directory cannot be written."""

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(
            f"the simulated Station cannot write {directory}: {reason}",
            hint="make room or give it another place: `state: DIR` in the site file",
        )


class NotStoppedError(BackendError):
    """Not even a kill ended it."""

    def __init__(self, name: str, pid: int | None) -> None:
        super().__init__(f"the simulated container {name} (process {pid}) cannot be ended", hint="end it by hand")


class UnknownFaultError(CommandLineError):
    """A fault that nobody wrote."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"no simulated fault is called {name!r}", hint=f"there are {', '.join(known)}")


class UnfitFaultError(CommandLineError):
    """A fault that this launch has nothing for: it would come up as if nothing were wrong."""

    def __init__(self, name: str, recipe: str, lacking: str) -> None:
        super().__init__(f"{recipe} cannot rehearse {name}: {lacking}", hint="choose another fault, or another release")


def lacks(name: str, plan: Plan) -> str | None:
    """What the launch lacks for the fault to show, as the end of a sentence; None where it would show."""
    found = FAULTS[name]
    names = faults_of(plan.engine)
    if name not in names:
        return f"a lane of {engine(plan.engine).title} rehearses {', '.join(names)}"
    if found.patched and not any(patches(plan)):
        return "the recipe pins no file over the image"
    if found.of_hook and not _hooked(plan):
        return "the launch installs no hook"
    missing = [f"--{key.replace('_', '-')}" for key in found.drops if f"--{key.replace('_', '-')}" not in plan.command]
    return f"the command has no {missing[0]}" if missing else None


def _hooked(plan: Plan) -> bool:
    """By the variables that install one."""
    return any(patch.env in plan.container.env for known in checkpoints() for patch in known.variants.values())
