"""`gb300serve status`."""

import typer

from gb300serve.cli.lanes import places
from gb300serve.cli.parameters import Json, On, RecipeDirs, SiteFile
from gb300serve.cli.services import Services
from gb300serve.cli.table import table
from gb300serve.cli.workspace import workspace
from gb300serve.core.errors import BackendError
from gb300serve.lifecycle.status import LaneStatus, lanes

SCHEMA = "gb300serve.status/1"


def run(
    ctx: typer.Context, on: On = None, site: SiteFile = None, recipes: RecipeDirs = None, json: Json = False
) -> int:
    """Show every lane, on Docker and on the simulated Station: what it is, in which state, since when."""
    space = workspace(ctx, recipes, site)
    found = _everywhere(Services(space), on)
    if json:
        space.console.document({"schema": SCHEMA, "lanes": [lane.as_json() for lane in found]})
        return 0
    if not found:
        space.console.result("no lane")
        return 0
    for line in table(
        ("LANE", "RELEASE", "ON", "STATE", "PHASE", "CONTAINER", "SINCE (UTC)"), [_row(lane) for lane in found]
    ):
        space.console.result(line)
    for lane in found:
        drifted = (each.message for each in lane.drift)
        for sentence in (*drifted, *_why(lane)):
            space.console.result(f"  {lane.container}: {sentence}")
    return 0


def _why(lane: LaneStatus) -> tuple[str, ...]:
    """Why it does not serve; of one that boots nobody expects an answer."""
    why = None if lane.state in {"booting", "tuning"} else lane.health.get("why")
    return (str(why),) if why else ()


def _everywhere(services: Services, on: On) -> list[LaneStatus]:
    found: list[LaneStatus] = []
    refused: BackendError | None = None
    history = services.history()
    for place in places(services, on):
        try:
            found += lanes(services.tools(place), services.known(place), history)
        except BackendError as error:
            refused = error
    if refused is not None and not any(lane.on == "sim" for lane in found):
        raise refused
    if refused is not None:
        services.space.console.message(f"only the simulated Station is shown: {refused.message}", "dim")
    return found


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
