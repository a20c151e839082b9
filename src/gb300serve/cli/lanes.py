"""Which lane a verb means: by REF, else the only live one, on Docker or on the simulated Station."""

import shlex
from collections.abc import Iterator

from gb300serve.cli.services import On, Services
from gb300serve.core.errors import BackendError, MachineError
from gb300serve.lifecycle.choose import choose
from gb300serve.lifecycle.conflicts import live
from gb300serve.lifecycle.ports import Container


class NoLaneError(MachineError):
    """Nothing of ours fits."""

    def __init__(self, ref: str | None, found_by: tuple[str, ...] = ()) -> None:
        what = f"nothing of {ref} is there" if ref else "no lane is running"
        super().__init__(what, hint=shlex.join(("gb300serve", "status", *found_by)))


class SeveralPlacesError(MachineError):
    """A lane runs on Docker and on the simulated Station."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"lanes run on both: {', '.join(names)}", hint="say which: --on docker or --on sim")


def places(services: Services, on: On | None) -> tuple[On, ...]:
    """Where to look; an absent simulated Station is not made to look at it."""
    if on is not None:
        return (on,)
    return ("docker", "sim") if services.simulated_exists else ("docker",)


def the_lane(verb: str, ref: str | None, services: Services, on: On | None) -> tuple[On, Container]:
    """The container that the verb means. Raises MachineError (6), or BackendError (7) where Docker alone was asked."""
    lane, release = _named(ref, services)
    found = [(place, each) for place, each in _candidates(verb, lane, release, services, on)]
    running = [(place, each) for place, each in found if live(each)]
    if len(running) > 1:
        raise SeveralPlacesError([f"{each.name} ({place})" for place, each in running])
    if not (running or found):
        raise NoLaneError(ref, services.space.words)
    return (running or found)[0]


def _candidates(
    verb: str, lane: str | None, release: str | None, services: Services, on: On | None
) -> Iterator[tuple[On, Container]]:
    looked = places(services, on)
    # What it says to type instead has to mean the same Station.
    command = shlex.join((verb, *services.space.words))
    for place in looked:
        try:
            chosen = choose(command, services.backend(place).containers(), lane, release)
        except BackendError:
            if len(looked) == 1:
                raise
            continue  # a machine with a simulated lane and no Docker is fine
        if chosen is not None:
            yield place, chosen


def _named(ref: str | None, services: Services) -> tuple[str | None, str | None]:
    if ref is None:
        return None, None
    _, recipe = services.space.load(ref)
    return recipe.lane, recipe.release
