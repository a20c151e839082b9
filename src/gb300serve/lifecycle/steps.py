"""What can be done to containers, as values: decided by reconcile, shown by --show-steps, carried out by execute."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gb300serve.plan.model import Plan


@dataclass(frozen=True, slots=True)
class CreateContainer:
    """Create it, do not start it."""

    plan: Plan
    labels: Mapping[str, str]

    def describe(self) -> str:
        return f"create {self.plan.container.name} for {self.plan.recipe} from {self.plan.image}"


@dataclass(frozen=True, slots=True)
class StartContainer:
    """`container` is its id, or its name where it does not exist yet; so below."""

    container: str
    name: str
    kept: bool = False
    """It has run before, or was created by a launch that was cut short."""

    def describe(self) -> str:
        return f"start {self.name}{' (the kept container)' if self.kept else ''}"


@dataclass(frozen=True, slots=True)
class StopContainer:
    """Ask it to end; kill it after `timeout` seconds."""

    container: str
    name: str
    timeout: float

    def describe(self) -> str:
        return f"stop {self.name}, killing it after {self.timeout:g} s; it stays as it is"


@dataclass(frozen=True, slots=True)
class RenameContainer:
    """From `before` to `after`."""

    container: str
    before: str
    after: str

    def describe(self) -> str:
        return f"rename {self.before} to {self.after}"


@dataclass(frozen=True, slots=True)
class AwaitReady:
    """Watch the boot until the lane has answered."""

    container: str
    name: str
    running: bool = False
    """It ran before this launch: it may be serving already."""

    def describe(self) -> str:
        verb = "see whether" if self.running else "wait until"
        return f"{verb} {self.name} lists the served name, is the server that answers, and completes a request"


@dataclass(frozen=True, slots=True)
class ApplyRestart:
    """Change the restart policy from `before` to `policy`."""

    container: str
    name: str
    policy: str
    before: str = "no"

    def describe(self) -> str:
        return f"set the restart policy of {self.name} to {self.policy}"


Step: TypeAlias = CreateContainer | StartContainer | StopContainer | RenameContainer | AwaitReady | ApplyRestart


def detached(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The same launch without its watch, and so without what only a watched READY allows (the restart policy)."""
    for position, step in enumerate(steps):
        if isinstance(step, AwaitReady):
            return steps[:position]
    return steps
