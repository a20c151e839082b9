"""`gb300serve status`."""

from collections.abc import Iterator
from typing import Annotated

import typer

from gb300serve.app.environment import PROGRAM
from gb300serve.app.hosts import Hosts
from gb300serve.app.lanes import StationStatus, all_stations, station_status
from gb300serve.app.runs import MUCH_BYTES, size_of_runs
from gb300serve.app.state import StateDirectory
from gb300serve.cli.console import TerminalConsole
from gb300serve.cli.parameters import Json, On, RecipeDirs, SiteFile, Station, open_workspace
from gb300serve.cli.views.diagnostics import table
from gb300serve.core.errors import BackendError, CommandLineError, ServiceError
from gb300serve.core.text import gib
from gb300serve.lifecycle.status import LaneStatus

SCHEMA = "gb300serve.status/1"
COLUMNS = ("LANE", "RELEASE", "ON", "STATE", "PHASE", "CONTAINER", "SINCE (UTC)")
DEADLINE = 15.0


class OneOrAllError(CommandLineError):
    """`--all` together with `--station`."""

    def __init__(self) -> None:
        super().__init__("--all and --station cannot be combined", hint="leave out one of them")


def run(
    ctx: typer.Context,
    on: On = None,
    everything: Annotated[bool, typer.Option("--all", help="Show all Stations of the site.")] = False,
    deadline: Annotated[
        float, typer.Option("--deadline", min=0.1, help="Seconds to wait for each Station, with --all.")
    ] = DEADLINE,
    check: Annotated[
        bool, typer.Option("--check", help="Send a short completion to each ready lane; exit 9 if one is degraded.")
    ] = False,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Show the release and the state of every lane, on Docker and on the simulated Station."""
    if everything and station:
        raise OneOrAllError
    workspace, console = open_workspace(ctx, recipes, site, station)
    hosts = Hosts(workspace.at(None) if everything else workspace)
    try:
        seen = (
            all_stations(hosts, on, deadline, check=check) if everything else (station_status(hosts, on, check=check),)
        )
    except BackendError:
        if json:  # a JSON reader gets an object with every exit code
            console.document({"schema": SCHEMA, "lanes": [], "stations": []})
        raise
    if json:
        lanes = [lane for status in seen for lane in status.lanes_as_json()]
        console.document({"schema": SCHEMA, "lanes": lanes, "stations": [status.as_json() for status in seen]})
    else:
        _show(seen, console, named=everything)
    if not everything and not json and (size := size_of_runs(StateDirectory(workspace))) > MUCH_BYTES:
        console.message(f"the runs take {gib(size)}: `{PROGRAM} runs prune` removes old ones", "dim")
    code = _exit_code(seen, console, named=everything)
    degraded = check and any(lane.state == "degraded" for status in seen for lane in status.lanes)
    return code or (ServiceError.exit_code if degraded else 0)


def _show(seen: tuple[StationStatus, ...], console: TerminalConsole, *, named: bool) -> None:
    rows = [row for status in seen for row in _rows(status, named=named)]
    if not rows:
        console.result("no lanes")
        return
    console.results(table(("STATION", *COLUMNS) if named else COLUMNS, rows))
    console.results(f"  {sentence}" for station in seen for sentence in _sentences(station, named=named))


def _exit_code(seen: tuple[StationStatus, ...], console: TerminalConsole, *, named: bool) -> int:
    """Report what the table does not show; 7 if a Station failed."""
    for status in seen:
        if status.refused is not None and not named:
            console.message(f"only the simulated Station is shown: {status.refused.message}", "dim")
        elif status.refused is not None and status.optional:
            text = "the site does not define a Docker Engine for this machine"
            console.message(f"{text}: {status.refused.message}", "dim")
    failed = [status.station or "the top level of the site" for status in seen if status.failed]
    if not failed:
        return 0
    console.message(f"{len(failed)} of {len(seen)} Stations did not respond: {', '.join(failed)}", "error")
    return BackendError.exit_code


def _rows(status: StationStatus, *, named: bool) -> Iterator[list[str]]:
    station = [status.station or "-"] if named else []
    for lane in status.lanes:
        yield station + _row(lane)
    if named and status.refused is not None and not status.optional:
        yield [*station, "-", "-", "docker", "no answer", "-", "-", "-"]


def _sentences(status: StationStatus, *, named: bool) -> Iterator[str]:
    for lane in status.lanes:
        yield from (f"{lane.container}: {drift.message}" for drift in lane.drift)
        why = lane.health.get("why")
        if why and lane.state not in {"booting", "tuning"}:
            yield f"{lane.container}: {why}"
    if named and status.refused is not None and not status.optional:
        yield f"{status.station or 'the site'}: {status.refused.message}"


def _row(lane: LaneStatus) -> list[str]:
    phase, since = lane.phase or "-", lane.since or "-"
    return [lane.lane or "?", lane.release or "?", lane.on, lane.state, phase, lane.container, since]
