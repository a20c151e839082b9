"""What `up` and `rollback` look at before anything is done, and how they show it; changes nothing."""

from dataclasses import dataclass, replace

from gb300serve.adapters.host import file_refusal, refusal
from gb300serve.cli.doctoring import NOTHING_BEARABLE, Looked, for_launch
from gb300serve.cli.formats import text
from gb300serve.cli.services import Services
from gb300serve.journal.disk import StateUnusableError
from gb300serve.journal.expected import MeasuredTimes, measured
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.steps import StartContainer, Step
from gb300serve.lifecycle.up import prepare

# The GPU's memory and the host's, as `fit` computes them.
_MEMORY = frozenset({"PRE030", "PRE031"})


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One launching command. `words` are what other commands are told while they wait for it."""

    launch: Launch
    verb: str
    words: str
    replace: bool = False
    detach: bool = False
    follow: bool = True
    names_back: bool = False
    reason: str | None = None
    told: tuple[str, ...] | None = None
    """What to say, with the steps, before they are carried out."""
    checked: Launch | None = None
    """The launch as preflight finds its recipe, where that is not by its REF."""


def show_steps(asked: LaunchRequest, services: Services) -> int:
    """What would be done, after the same looks as before doing it: refused with the same words and exit code."""
    runs, journal = services.runs.directory, services.journal.path
    for path, problem in ((runs, refusal(runs)), (journal, file_refusal(journal))):
        if problem is not None:
            raise StateUnusableError(path, problem)
    steps = steps_of(asked, services)
    services.space.console.messages(text.lines(noticed(asked, steps, services).found))
    for line in (*(asked.told or ()), *numbered(steps)):
        services.space.console.result(line)
    return 0


def numbered(steps: tuple[Step, ...]) -> tuple[str, ...]:
    """One line a step."""
    return tuple(f"{number}. {step.describe()}" for number, step in enumerate(steps, 1))


def steps_of(asked: LaunchRequest, services: Services) -> tuple[Step, ...]:
    """Look, and decide; changes nothing. Raises MachineError (6) or BackendError (7)."""
    launch, on = asked.launch, asked.launch.on
    services.backend(on).check()
    return prepare(
        launch,
        services.tools(on),
        replace=asked.replace,
        listeners=services.listeners(on),
        neighbours=services.neighbours(on),
    )


def noticed(asked: LaunchRequest, steps: tuple[Step, ...], services: Services) -> Looked:
    """What preflight says; raises MachineUnfitError (6). The simulated Station is where a boot that cannot succeed is
    rehearsed: there memory does not block, and what is only a note is left to `doctor`."""
    simulated = asked.launch.on == "sim"
    looked = for_launch(services, asked.checked or asked.launch, steps, _MEMORY if simulated else NOTHING_BEARABLE)
    if not simulated:
        return looked
    return replace(looked, found=tuple(each for each in looked.found if each.severity == "warning"))


def usual_of(launch: Launch, steps: tuple[Step, ...], services: Services) -> MeasuredTimes:
    """What earlier boots of this plan took, fresh ones or those of a kept container."""
    kept = any(isinstance(step, StartContainer) and step.kept for step in steps)
    return measured(services.history().runs, launch.digest, launch.on, kept=kept)


def expected_of(launch: Launch, steps: tuple[Step, ...], usual: MeasuredTimes) -> dict[str, float]:
    """The recipe's seconds are those of a fresh container; what a kept one took goes before them."""
    kept = any(isinstance(step, StartContainer) and step.kept for step in steps)
    return {**launch.expected, **usual.phases} if kept else {**usual.phases, **launch.expected}
