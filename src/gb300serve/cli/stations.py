"""What `status` asks: the Docker Engine and the simulated Station of one Station of the site, or of all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gb300serve.adapters.at_once import at_once
from gb300serve.cli.lanes import places
from gb300serve.cli.services import On, Services
from gb300serve.core.errors import BackendError, Gb300Error
from gb300serve.lifecycle.status import LaneStatus, lanes


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
