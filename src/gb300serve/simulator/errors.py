"""Errors of the simulated Station, and the check that a fault can show in a launch. Pure."""

from collections.abc import Iterable

from gb300serve.core.errors import BackendError, CommandLineError
from gb300serve.fit.checkpoint import known_checkpoints
from gb300serve.lifecycle.receipts import patches
from gb300serve.plan.model import Plan
from gb300serve.simulator.engine.faults import FAULTS
from gb300serve.simulator.engine.registry import ENGINES


class NoSuchSimulationError(BackendError):
    """The container does not exist, or no longer."""

    def __init__(self, container: str) -> None:
        super().__init__(f"no simulated container {container}", hint="gb300serve status lists the containers")


class NameTakenError(BackendError):
    """Another container has this name."""

    def __init__(self, name: str, holder: str) -> None:
        super().__init__(
            f"the name {name} is in use by simulated container {holder[:12]}",
            hint="remove or rename that container, or choose another container.name",
        )


class NoSuchImageError(BackendError):
    """This rehearsal excludes the image."""

    def __init__(self, image: str) -> None:
        super().__init__(
            f"image {image} not found on the simulated Station", hint="it has every image that the rehearsal includes"
        )


class ContainerRunningError(BackendError):
    """A running container cannot be removed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the simulated container {name} is running", hint="stop it first")


class ShimFailedError(BackendError):
    """The shim, which runs the simulated engine, did not start."""

    def __init__(self, name: str, output: str) -> None:
        super().__init__(
            f"the simulated container {name} did not start: {output or 'its shim ended without output'}",
            hint="see shim.log next to its container.json",
        )


class StationUnwritableError(BackendError):
    """The Station's directory is not writable."""

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(
            f"the simulated Station cannot write {directory}: {reason}",
            hint="free disk space, or set another directory: `state: DIR` in the site file",
        )


class NotStoppedError(BackendError):
    """The container still runs after SIGKILL."""

    def __init__(self, name: str, pid: int | None) -> None:
        super().__init__(
            f"the simulated container {name} (process {pid}) does not stop", hint="kill the process yourself"
        )


class UnknownFaultError(CommandLineError):
    """No fault has this name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"{name!r} is not a simulated fault", hint=f"expected one of {', '.join(known)}")


class UnfitFaultError(CommandLineError):
    """The fault could not show in this launch, which would start as if nothing were wrong."""

    def __init__(self, name: str, recipe: str, reason: str) -> None:
        super().__init__(f"{recipe} cannot rehearse {name}: {reason}", hint="choose another fault or another release")


def missing_requirement(name: str, plan: Plan) -> str | None:
    """What the launch lacks for the fault to show, as a sentence; None if it lacks nothing."""
    fault, faults = FAULTS[name], ENGINES[plan.engine].faults
    if name not in faults:
        return f"its engine {plan.engine} rehearses only {', '.join(faults)}"
    if fault.patched and not any(patches(plan)):
        return "the recipe pins no file over the image"
    if fault.needs_hook and not _has_hook(plan):
        return "the launch installs no hook"
    options = (f"--{key.replace('_', '-')}" for key in fault.drops)
    return next((f"the command has no {option}" for option in options if option not in plan.command), None)


def _has_hook(plan: Plan) -> bool:
    variants = (patch for checkpoint in known_checkpoints() for patch in checkpoint.variants.values())
    return any(patch.env in plan.container.env for patch in variants)
