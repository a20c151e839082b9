"""Operations on containers, as values: reconcile decides, `--show-steps` prints, execute carries them out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeAlias

from gb300serve.plan.model import Plan


@dataclass(frozen=True, slots=True)
class CreateContainer:
    """Create the container without starting it."""

    plan: Plan
    labels: Mapping[str, str]

    def describe(self) -> str:
        return f"create {self.plan.container.name} for {self.plan.recipe} from {self.plan.image}"


@dataclass(frozen=True, slots=True)
class StartContainer:
    """`container` is the id, or the name if the container does not exist yet; the same below."""

    container: str
    name: str
    kept: bool = False
    """It ran before, or was created by a launch that was killed."""

    def describe(self) -> str:
        return f"start {self.name}{' (the kept container)' if self.kept else ''}"


@dataclass(frozen=True, slots=True)
class StopContainer:
    """Send the stop signal; SIGKILL after `timeout` seconds."""

    container: str
    name: str
    timeout: float

    def describe(self) -> str:
        return f"stop {self.name} (SIGKILL after {self.timeout:g} s); the container is kept"


@dataclass(frozen=True, slots=True)
class RenameContainer:
    """From `before` to `after`; `held` describes a release that is kept as the way back."""

    container: str
    before: str
    after: str
    held: str = ""

    def describe(self) -> str:
        kept = f"; {self.held} is kept, and rollback returns to it" if self.held else ""
        return f"rename {self.before} to {self.after}{kept}"


@dataclass(frozen=True, slots=True)
class AwaitReady:
    """Watch the boot until the lane answers."""

    container: str
    name: str
    running: bool = False
    """It ran before this launch and may serve already."""

    def describe(self) -> str:
        verb = "check" if self.running else "wait"
        return f"{verb} for READY (right model listed, our process answers, one completion succeeds)"


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


def starts_kept(steps: Iterable[Step]) -> bool:
    """Whether a kept container is started instead of a new one."""
    return any(isinstance(step, StartContainer) and step.kept for step in steps)


def runs_already(steps: Iterable[Step]) -> bool:
    """Whether the lane ran before this launch: it boots or serves already."""
    return any(isinstance(step, AwaitReady) and step.running for step in steps)


def detached(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The launch without its watch, and without the restart policy, which needs a watched READY."""
    return tuple(takewhile(lambda step: not isinstance(step, AwaitReady), steps))
