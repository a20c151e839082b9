"""Find the lane of a command: by REF, else the only running lane, on Docker or on the simulated Station."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from gb300serve.adapters.system import at_once
from gb300serve.app.hosts import ContainerHost, Hosts, On
from gb300serve.app.launchable import known_launches
from gb300serve.app.state import StateDirectory
from gb300serve.app.workspace import Workspace
from gb300serve.core.errors import Action, BackendError, Gb300Error, MachineError
from gb300serve.core.redaction import literal_secret
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.launch import CHANGED, option_values
from gb300serve.lifecycle.reconcile import is_live
from gb300serve.lifecycle.status import LaneStatus, choose_container, lanes
from gb300serve.probe.readiness import LIVENESS_TIMEOUT

# Shorter values are placeholders; redacting `x` would make a log unreadable.
_SHORTEST = 4
_SECRET_FLAGS = ("--api-key", "--admin-api-key", "--hf-token")


class NoLaneError(MachineError):
    """No matching container exists."""

    def __init__(self, ref: str | None) -> None:
        message = f"no container of {ref} exists" if ref else "no lane is running"
        super().__init__(message, suggest=(Action("status", ref=""),))


class SeveralHostsError(MachineError):
    """Lanes run on Docker and on the simulated Station."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"several lanes are running: {', '.join(names)}", hint="choose with --on docker or --on sim")


def find_lane(
    verb: str, ref: str | None, hosts: Hosts, on: On | None, *, stopped: bool = False
) -> tuple[ContainerHost, Container]:
    """The lane of a REF, else the only running one, with `stopped` else the only stopped one.

    Raises MachineError (6), or BackendError (7) if the answer depends on an Engine that does not respond.
    """
    named = _named(ref, hosts.workspace)
    found, refused = _candidates(partial(choose_container, verb, stopped=stopped), named, hosts, on)
    running = [(host, container) for host, container in found if is_live(container)]
    if not running and refused is not None:
        raise refused
    if len(running) > 1:
        raise SeveralHostsError([f"{container.name} ({host.on})" for host, container in running])
    if not (running or found):
        raise NoLaneError(ref)
    return (running or found)[0]


def _candidates(
    choose: Callable[..., Container | None], wanted: tuple[str | None, str | None], hosts: Hosts, on: On | None
) -> tuple[list[tuple[ContainerHost, Container]], BackendError | None]:
    """The container of each host, and the error of a host that does not respond; `wanted`: lane and release."""
    found: list[tuple[ContainerHost, Container]] = []
    refused: BackendError | None = None
    for name in hosts.names(on):
        try:
            host = hosts.at(name)
            container = choose(host.backend.containers(), *wanted)
        except BackendError as error:
            refused = error  # a machine may have a simulated lane and no Docker
            continue
        if container is not None:
            found.append((host, container))
    return found, refused


def _named(ref: str | None, workspace: Workspace) -> tuple[str | None, str | None]:
    if ref is None:
        return None, None
    _, recipe = workspace.load(ref.removesuffix(CHANGED))
    return recipe.lane, recipe.release + CHANGED * ref.endswith(CHANGED)


def held_secrets(container: Container, state: StateDirectory) -> tuple[str, ...]:
    """Secret values of a container: named by its recipe, recognised by name or shape, and keys in its arguments.

    SGLang prints its whole `server_args`, `api_key='…'` among them.
    """
    named = set(_recorded_secrets(container, state))
    environment = [value for name, value in container.env.items() if name in named or literal_secret(name, value)]
    arguments = [value for flag in _SECRET_FLAGS for value in option_values(container.command, flag)]
    return tuple({value: None for value in (*environment, *arguments) if len(value) >= _SHORTEST})


def _recorded_secrets(container: Container, state: StateDirectory) -> Iterator[str]:
    """Names of secrets in the plans of the container's runs; none if these cannot be read."""
    directory = state.runs.directory
    try:
        runs = [run.run for run in state.runs.all() if run.container_id == container.id]
        plans = [json.loads(state.disk.read(directory / run / "plan.json") or b"{}") for run in runs]
    except (OSError, ValueError):
        return
    for plan in plans:
        for secret in plan.get("container", {}).get("secrets", ()):
            yield secret["name"]


Ask = Callable[[], tuple[LaneStatus, ...]]


class StationTimeoutError(BackendError):
    """No answer within the deadline."""

    def __init__(self, where: str, seconds: float) -> None:
        super().__init__(f"{where} did not respond within {seconds:g} s", hint="wait longer with --deadline SECONDS")


@dataclass(frozen=True)
class StationStatus:
    """The status of one Station. `refused`: the error of its Engine; `optional`: the site does not define an Engine."""

    station: str | None
    docker: str | None
    lanes: tuple[LaneStatus, ...]
    refused: Gb300Error | None = None
    optional: bool = False

    @property
    def failed(self) -> bool:
        """Whether `status` of this Station alone exits with 7: not if a simulated lane exists."""
        return self.refused is not None and not self.optional and not any(lane.on == "sim" for lane in self.lanes)

    def as_json(self) -> dict[str, Any]:
        return {"station": self.station, "docker": self.docker, "error": self.refused and self.refused.message}

    def lanes_as_json(self) -> list[dict[str, Any]]:
        return [{**lane.as_json(), "station": self.station} for lane in self.lanes]


def station_status(hosts: Hosts, on: On | None, *, check: bool = False) -> StationStatus:
    """The Station of the command line; `check` as in `lanes`. Raises BackendError (7) if there is nothing to show."""
    found: list[LaneStatus] = []
    refused: BackendError | None = None
    for ask in _queries(hosts, hosts.names(on), check=check).values():
        try:
            found += ask()
        except BackendError as error:
            refused = error
    status = StationStatus(hosts.workspace.station, hosts.docker_address, tuple(found), refused)
    if status.failed and refused is not None:
        raise refused
    return status


def all_stations(hosts: Hosts, on: On | None, patience: float, *, check: bool = False) -> tuple[StationStatus, ...]:
    """The top level of the site and each of its `stations`, queried concurrently within `patience` seconds.

    `check` as in `lanes`; it has its own time.
    """
    workspace = hosts.workspace
    names = (None, *workspace.site(None).stations)
    stations = {name: hosts if name is None else Hosts(workspace.at(name)) for name in names}
    named = {station.docker_address for name, station in stations.items() if name is not None}
    asks: dict[tuple[str | None, On], Ask] = {}
    for name, station in stations.items():
        twice = name is None and station.docker_address in named
        places = tuple(place for place in station.names(on) if not (twice and place == "docker"))
        asks |= {(name, place): ask for place, ask in _queries(station, places, check=check).items()}
    answers = at_once(asks, patience + (LIVENESS_TIMEOUT if check else 0.0))
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


def _queries(hosts: Hosts, places: tuple[On, ...], *, check: bool) -> dict[On, Ask]:
    """One query per container host; recipes and journal are read before the deadline starts."""
    history = StateDirectory(hosts.workspace).history()

    def query(place: On) -> Ask:
        known = known_launches(hosts.workspace, hosts, place)
        return lambda: lanes(hosts.at(place).tools(), known, history, check=check)

    return {place: query(place) for place in places}
