"""A lane that serves already, looked at once more before anybody says so."""

from collections.abc import Iterator

from gb300serve.core.errors import ServiceError
from gb300serve.journal.history import RunHistory
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.ports import Container
from gb300serve.lifecycle.status import LaneStatus, lane_status
from gb300serve.lifecycle.tools import Tools


class ServesWronglyError(ServiceError):
    """It runs and answers, but is not what its recipe describes (exit 9); it is left alone."""

    def __init__(self, launch: Launch, differs: tuple[str, ...]) -> None:
        named = "\n".join(f"  {sentence}" for sentence in differs)
        super().__init__(
            f"{launch.ref} runs already as {launch.name}, but serves wrongly\n{named}",
            hint=f"it keeps running; to launch it anew: {launch.command('down', '--remove')}, then "
            f"{launch.command('up')}",
        )
        self.differs = differs


def look_again(container: Container, launch: Launch, tools: Tools, history: RunHistory) -> tuple[str, ...]:
    """What is to be said beside that it serves: where the journal tells another story.

    Health, served name, the receipts of its boot and drift are looked at, as `status` does. Raises ServesWronglyError.
    """
    seen = lane_status(container, tools, (launch,), history)
    differs = tuple(_differs(seen))
    if differs:
        raise ServesWronglyError(launch, differs)
    return tuple(each.message for each in seen.drift)


def _differs(seen: LaneStatus) -> Iterator[str]:
    if seen.state != "ready":
        why = seen.health.get("why")
        yield f"{seen.state}: {why}" if why else seen.state
    # Who started it is told, and makes it no worse.
    yield from (each.message for each in seen.drift if each.against != "journal")
