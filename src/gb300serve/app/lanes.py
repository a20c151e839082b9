"""Which lane a verb means: by REF, else the only live one, on Docker or on the simulated Station."""

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gb300serve.adapters.system import at_once
from gb300serve.app.services import On, Services
from gb300serve.core.errors import BackendError, Gb300Error, MachineError
from gb300serve.core.redaction import literal_secret
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.launch import values
from gb300serve.lifecycle.reconcile import live
from gb300serve.lifecycle.status import LaneStatus, choose, lanes


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


class SilentStationError(BackendError):
    """Nothing came within the deadline."""

    def __init__(self, where: str, seconds: float) -> None:
        super().__init__(f"nothing came from {where} within {seconds:g} s", hint="--deadline SECONDS waits longer")


@dataclass(frozen=True)
class Seen:
    """What a Station answered. `refused`: its Docker Engine did not; `optional`: nobody said that it has one."""

    station: str | None
    docker: str | None
    lanes: tuple[LaneStatus, ...]
    refused: Gb300Error | None = None
    optional: bool = False

    @property
    def failed(self) -> bool:
        """Is its status alone exit 7? It is not where a simulated lane is there."""
        return self.refused is not None and not self.optional and not any(lane.on == "sim" for lane in self.lanes)

    def as_json(self) -> dict[str, Any]:
        """One object of `stations`."""
        return {"station": self.station, "docker": self.docker, "error": self.refused and self.refused.message}

    def lanes_as_json(self) -> list[dict[str, Any]]:
        """Its objects of `lanes`."""
        return [{**lane.as_json(), "station": self.station} for lane in self.lanes]


def one(services: Services, on: On | None) -> Seen:
    """The Station that the command line means. Raises BackendError (7) where nothing can be shown."""
    found: list[LaneStatus] = []
    refused: BackendError | None = None
    for ask in _questions(services, places(services, on)).values():
        try:
            found += ask()
        except BackendError as error:
            refused = error
    seen = Seen(services.space.station, _docker(services), tuple(found), refused)
    if seen.failed and refused is not None:
        raise refused
    return seen


def everywhere(services: Services, on: On | None, patience: float) -> tuple[Seen, ...]:
    """The top level of the site and each of its `stations`, asked at once; nobody waits for one that is silent."""
    names = (None, *services.site.stations)
    each = {name: services if name is None else Services(services.space.at(name)) for name in names}
    named = {_docker(own) for name, own in each.items() if name is not None}
    asks: dict[tuple[str | None, On], Callable[[], tuple[LaneStatus, ...]]] = {}
    for name, own in each.items():
        twice = name is None and _docker(own) in named
        looked = tuple(place for place in places(own, on) if not (twice and place == "docker"))
        asks |= {(name, place): ask for place, ask in _questions(own, looked).items()}
    answers = at_once(asks, patience)
    asked = [name for name in names if any(key[0] == name for key in asks)]
    return tuple(_seen(name, each[name], answers, patience) for name in asked)


def _seen(
    name: str | None,
    own: Services,
    answers: dict[tuple[str | None, On], tuple[LaneStatus, ...] | Gb300Error | None],
    patience: float,
) -> Seen:
    docker = _docker(own)
    found: tuple[LaneStatus, ...] = ()
    refused: Gb300Error | None = None
    for (station, place), answer in answers.items():
        if station != name:
            continue
        if isinstance(answer, tuple):
            found += answer
        else:
            where = docker or name or "this machine"
            refused = answer or SilentStationError(where if place == "docker" else "the simulated Station", patience)
    said = own.site.docker.host or own.site.docker.context
    return Seen(name, docker, found, refused, optional=name is None and bool(own.site.stations) and not said)


def _questions(services: Services, looked: tuple[On, ...]) -> dict[On, Callable[[], tuple[LaneStatus, ...]]]:
    """What is to be asked at each place; recipes and journal are read here, before anybody waits."""
    history = services.history()

    def question(place: On) -> Callable[[], tuple[LaneStatus, ...]]:
        known = services.known(place)
        return lambda: lanes(services.tools(place), known, history)

    return {place: question(place) for place in looked}


def _docker(services: Services) -> str | None:
    """The address of its Docker Engine; None for a docker context that cannot be read."""
    try:
        return services.endpoint.host
    except BackendError:
        return None


# Shorter ones are placeholders, and hiding `x` would leave nothing of a log.
_SHORTEST = 4
_FLAGS = ("--api-key", "--admin-api-key", "--hf-token")


def held_secrets(container: Container, services: Services) -> tuple[str, ...]:
    """Those that its recipe names as secrets, those whose name or shape tells, and keys among the engine's words.

    SGLang prints its whole `server_args`, `api_key='…'` among them.
    """
    named = set(_hiding_named(container, services))
    environment = [value for name, value in container.env.items() if name in named or literal_secret(name, value)]
    words = [value for flag in _FLAGS for value in values(container.command, flag)]
    return tuple({value: None for value in (*environment, *words) if len(value) >= _SHORTEST})


def _hiding_named(container: Container, services: Services) -> Iterator[str]:
    """Names of secrets in the plans that the container's runs were launched from; nothing where they cannot be read."""
    directory = services.runs.directory
    try:
        runs = [each.run for each in services.runs.all() if each.container_id == container.id]
        plans = [json.loads(services.disk.read(directory / run / "plan.json") or b"{}") for run in runs]
    except (OSError, ValueError):
        return
    for plan in plans:
        for secret in plan.get("container", {}).get("secrets", ()):
            yield secret["name"]
