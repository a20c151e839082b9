"""Which container a verb means: by the release, or the only live lane."""

from collections.abc import Iterable

from gb300serve.core.errors import CommandLineError
from gb300serve.lifecycle.conflicts import live
from gb300serve.lifecycle.names import is_failed, ref_of, title
from gb300serve.lifecycle.ports import LABEL_LANE, Container


class SeveralLanesError(CommandLineError):
    """Without a REF only one live lane can be meant."""

    def __init__(self, verb: str, containers: Iterable[Container]) -> None:
        each = tuple(containers)
        super().__init__(
            f"several lanes are running: {', '.join(title(container) for container in each)}",
            hint="; ".join(f"gb300serve {verb} {ref_of(container)}" for container in each),
        )


def choose(verb: str, containers: Iterable[Container], lane: str | None, release: str | None) -> Container | None:
    """Live ones first, then the one that ran last, failed ones only where there is no other.

    Without lane and release only a live container is meant, and it has to be the only one. None: nothing fits.
    """
    ours = [each for each in containers if each.ours and _means(each, lane, release)]
    running = [each for each in ours if live(each)]
    if len(running) > 1:
        raise SeveralLanesError(verb, running)
    if running or lane is None:
        return running[0] if running else None
    return max(ours, key=lambda each: (not is_failed(each), _last_seen(each)), default=None)


def _means(container: Container, lane: str | None, release: str | None) -> bool:
    if lane is None:
        return True
    if release is None:
        return container.labels.get(LABEL_LANE) == lane
    return ref_of(container) == f"{lane}/{release}"


def _last_seen(container: Container) -> float:
    return container.finished_at or container.started_at or container.created_at
