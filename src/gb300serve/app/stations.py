"""The status of one Station of the site, or of all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gb300serve.adapters.system import at_once
from gb300serve.app.hosts import Hosts, On
from gb300serve.app.launchable import known_launches
from gb300serve.app.state import StateDirectory
from gb300serve.core.errors import BackendError, Gb300Error
from gb300serve.lifecycle.status import LaneStatus, lanes

Ask = Callable[[], tuple[LaneStatus, ...]]


class StationTimeoutError(BackendError):
    """No answer within the deadline."""

    def __init__(self, where: str, seconds: float) -> None:
        super().__init__(f"{where} did not answer within {seconds:g} s", hint="--deadline SECONDS waits longer")


@dataclass(frozen=True)
class StationStatus:
    """The answer of one Station. `refused`: the error of its Docker Engine; `optional`: the site names no Engine."""

    station: str | None
    docker: str | None
    lanes: tuple[LaneStatus, ...]
    refused: Gb300Error | None = None
    optional: bool = False

    @property
    def failed(self) -> bool:
        """Whether `status` of this Station alone is exit 7: not where a simulated lane exists."""
        return self.refused is not None and not self.optional and not any(lane.on == "sim" for lane in self.lanes)

    def as_json(self) -> dict[str, Any]:
        """One object of `stations`."""
        return {"station": self.station, "docker": self.docker, "error": self.refused and self.refused.message}

    def lanes_as_json(self) -> list[dict[str, Any]]:
        """Its objects of `lanes`."""
        return [{**lane.as_json(), "station": self.station} for lane in self.lanes]


def station_status(hosts: Hosts, on: On | None) -> StationStatus:
    """The Station of the command line. Raises BackendError (7) where nothing can be shown."""
    found: list[LaneStatus] = []
    refused: BackendError | None = None
    for ask in _questions(hosts, hosts.names(on)).values():
        try:
            found += ask()
        except BackendError as error:
            refused = error
    status = StationStatus(hosts.workspace.station, hosts.docker_address, tuple(found), refused)
    if status.failed and refused is not None:
        raise refused
    return status


def all_stations(hosts: Hosts, on: On | None, patience: float) -> tuple[StationStatus, ...]:
    """The top level of the site and each of its `stations`, asked concurrently within `patience` seconds."""
    workspace = hosts.workspace
    names = (None, *workspace.site(None).stations)
    stations = {name: hosts if name is None else Hosts(workspace.at(name)) for name in names}
    named = {station.docker_address for name, station in stations.items() if name is not None}
    asks: dict[tuple[str | None, On], Ask] = {}
    for name, station in stations.items():
        twice = name is None and station.docker_address in named
        places = tuple(place for place in station.names(on) if not (twice and place == "docker"))
        asks |= {(name, place): ask for place, ask in _questions(station, places).items()}
    answers = at_once(asks, patience)
    asked = [name for name in names if any(key[0] == name for key in asks)]
    return tuple(_status(name, stations[name], answers, patience) for name in asked)


def _status(
    name: str | None,
    hosts: Hosts,
    answers: dict[tuple[str | None, On], tuple[LaneStatus, ...] | Gb300Error | None],
    patience: float,
) -> StationStatus:
    docker, site = hosts.docker_address, hosts.workspace.site(None)
    found: tuple[LaneStatus, ...] = ()
    refused: Gb300Error | None = None
    for (station, place), answer in answers.items():
        if station != name:
            continue
        if isinstance(answer, tuple):
            found += answer
        else:
            where = (docker or name or "this machine") if place == "docker" else "the simulated Station"
            refused = answer or StationTimeoutError(where, patience)
    optional = name is None and bool(site.stations) and not (site.docker.host or site.docker.context)
    return StationStatus(name, docker, found, refused, optional=optional)


def _questions(hosts: Hosts, places: tuple[On, ...]) -> dict[On, Ask]:
    """One question per container host; recipes and journal are read here, before anybody waits."""
    history = StateDirectory(hosts.workspace).history()

    def question(place: On) -> Ask:
        known = known_launches(hosts.workspace, hosts, place)
        return lambda: lanes(hosts.at(place).tools(), known, history)

    return {place: question(place) for place in places}
