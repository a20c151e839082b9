"""`gb300serve diff`."""

from typing import Annotated

import typer

from gb300serve.app.diff import side
from gb300serve.cli.parameters import Json, RecipeDirs, Ref, Sets, SiteFile, Station, open_workspace
from gb300serve.cli.views import diff
from gb300serve.compare.diff import difference


def run(
    ctx: typer.Context,
    before: Ref,
    after: Ref,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 5 if there is a difference.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown for a pull request.")] = False,
    sets: Sets = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Show what the second release changes, and what the change costs; --set applies to the second."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    result = difference(side(workspace, before), side(workspace, after, sets or ()))
    if json:
        console.document(result.as_json())
    else:
        workspace.print_notes()
        label = f"{after}+set" if sets else after
        for line in diff.markdown(result, before, label) if markdown else diff.lines(result):
            console.result(line)
    return 5 if exit_code and result.any else 0
