"""What serves, as the journal writes it down."""

from gb300serve.core.errors import BackendError
from gb300serve.journal.entry import RunningLane
from gb300serve.lifecycle.conflicts import live
from gb300serve.lifecycle.names import release_of
from gb300serve.lifecycle.ports import LABEL_PLAN, Container, ContainerBackend


def serving(backend: ContainerBackend) -> tuple[RunningLane, ...]:
    """Our containers that run there; none where their engine cannot be asked just now."""
    try:
        found = backend.containers()
    except BackendError:
        return ()
    return tuple(as_serving(each) for each in found if each.ours and live(each))


def as_serving(container: Container) -> RunningLane:
    """One of ours."""
    return RunningLane(release_of(container), container.name, container.id, container.labels.get(LABEL_PLAN, ""))


def named(servings: tuple[RunningLane, ...]) -> str:
    """`deepseek-v4.1-flash/v14 (dsv41-vllm)`, or `nothing`."""
    return ", ".join(f"{each.release} ({each.container})" for each in servings) or "nothing"
