"""`gb300serve status`."""

from collections.abc import Iterator
from typing import Annotated

import typer

from gb300serve.app.hosts import Hosts
from gb300serve.app.stations import StationStatus, all_stations, station_status
from gb300serve.cli.console import TerminalConsole
from gb300serve.cli.parameters import Json, On, RecipeDirs, SiteFile, Station, open_workspace
from gb300serve.cli.views.table import table
from gb300serve.core.errors import BackendError, CommandLineError
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
    everything: Annotated[bool, typer.Option("--all", help="Every station of the site, all at once.")] = False,
    deadline: Annotated[
        float, typer.Option("--deadline", min=0.1, help="Seconds that a station has to answer, with --all.")
    ] = DEADLINE,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Show every lane, on Docker and on the simulated Station: what it is, in which state, since when."""
    if everything and station:
        raise OneOrAllError
    workspace, console = open_workspace(ctx, recipes, site, station)
    hosts = Hosts(workspace.at(None) if everything else workspace)
    try:
        seen = all_stations(hosts, on, deadline) if everything else (station_status(hosts, on),)
    except BackendError:
        if json:  # whoever reads it gets an object, whatever the exit code
            console.document({"schema": SCHEMA, "lanes": [], "stations": []})
        raise
    if json:
        each = [lane for found in seen for lane in found.lanes_as_json()]
        console.document({"schema": SCHEMA, "lanes": each, "stations": [found.as_json() for found in seen]})
    else:
        _show(seen, console, named=everything)
    return _ended(seen, console, named=everything)


def _show(seen: tuple[StationStatus, ...], console: TerminalConsole, *, named: bool) -> None:
    rows = [row for found in seen for row in _rows(found, named=named)]
    if not rows:
        console.result("no lane")
        return
    for line in table(("STATION", *COLUMNS) if named else COLUMNS, rows):
        console.result(line)
    for found in seen:
        for sentence in _sentences(found, named=named):
            console.result(f"  {sentence}")


def _ended(seen: tuple[StationStatus, ...], console: TerminalConsole, *, named: bool) -> int:
    """7 where the status of one of them alone would be; what stays unsaid in the table is said."""
    for found in seen:
        if found.refused is not None and not named:
            console.message(f"only the simulated Station is shown: {found.refused.message}", "dim")
        elif found.refused is not None and found.optional:
            console.message(f"the site names no Docker Engine for this machine: {found.refused.message}", "dim")
    failed = [found.station or "the site's own" for found in seen if found.failed]
    if not failed:
        return 0
    console.message(f"{len(failed)} of {len(seen)} stations did not answer: {', '.join(failed)}", "error")
    return BackendError.exit_code


def _rows(found: StationStatus, *, named: bool) -> Iterator[list[str]]:
    station = [found.station or "-"] if named else []
    for lane in found.lanes:
        yield station + _row(lane)
    if named and found.refused is not None and not found.optional:
        yield [*station, "-", "-", "docker", "no answer", "-", "-", "-"]


def _sentences(found: StationStatus, *, named: bool) -> Iterator[str]:
    for lane in found.lanes:
        for sentence in (*(each.message for each in lane.drift), *_why(lane)):
            yield f"{lane.container}: {sentence}"
    if named and found.refused is not None and not found.optional:
        yield f"{found.station or 'the site'}: {found.refused.message}"


def _why(lane: LaneStatus) -> tuple[str, ...]:
    """Why it does not serve; of one that boots nobody expects an answer."""
    why = None if lane.state in {"booting", "tuning"} else lane.health.get("why")
    return (str(why),) if why else ()


def _row(lane: LaneStatus) -> list[str]:
    return [
        lane.lane or "?",
        lane.release or "?",
        lane.on,
        lane.state,
        lane.phase or "-",
        lane.container,
        lane.since or "-",
    ]
