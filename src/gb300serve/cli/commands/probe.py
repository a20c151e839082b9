"""`gb300serve probe`."""

from typing import Annotated

import typer

from gb300serve.app.actions import Invocation, suggesting
from gb300serve.app.hosts import Hosts
from gb300serve.app.probe import lane_probes
from gb300serve.cli.parameters import Json, On, OptionalRef, RecipeDirs, SiteFile, Station, open_workspace
from gb300serve.cli.views.probe import result_lines, summary
from gb300serve.core.errors import ServiceError

SCHEMA = "gb300serve.probe/1"


def run(
    ctx: typer.Context,
    ref: OptionalRef = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Send only this probe; repeatable.")
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="Send only the short set.")] = False,
    on: On = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Send requests to a running lane and check the answers. Exit 9 if one is wrong."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    with suggesting(Invocation(ref=ref or "", on=on, options=workspace.options)):
        probing = lane_probes(ref, Hosts(workspace), on, only or (), short=short)
        if not json:
            console.result(f"{probing.release} ({probing.container}) at {probing.endpoint.url}")
        results = []
        for result in probing.results():
            results.append(result)
            if not json:
                console.results(result_lines(result))
    failed = sum(result.outcome == "failed" for result in results)
    if json:
        head = {"schema": SCHEMA, "release": probing.release, "container": probing.container}
        where = {"url": probing.endpoint.url, "station": workspace.station, "model": probing.run.model or None}
        console.document({**head, **where, "failed": failed, "probes": [result.as_json() for result in results]})
    else:
        console.result(summary(results))
    return ServiceError.exit_code if failed else 0
