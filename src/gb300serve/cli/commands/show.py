"""`gb300serve show`."""

import typer

from gb300serve.cli.parameters import Json, RecipeDirs, Ref, Sets, SiteFile, Station, open_workspace
from gb300serve.recipe.write import to_yaml

SCHEMA = "gb300serve.show/1"


def run(
    ctx: typer.Context,
    ref: Ref,
    sets: Sets = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Print a release with everything that it inherits, as a self-contained recipe."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    loaded, _ = workspace.shareable(ref, sets)
    if json:
        console.document({"schema": SCHEMA, "recipe": loaded.root})
        return 0
    workspace.print_notes()
    console.result(to_yaml(loaded.root).rstrip("\n"))
    return 0
