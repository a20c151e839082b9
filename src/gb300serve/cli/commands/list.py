"""`gb300serve list`."""

from typing import Annotated, Any

import typer

from gb300serve.app.workspace import Workspace, workspace
from gb300serve.cli.parameters import Json, RecipeDirs
from gb300serve.cli.views.table import table
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import EvidenceSection, Recipe
from gb300serve.recipe.pins import pin_path

SCHEMA = "gb300serve.list/1"


def run(
    ctx: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Deprecated releases too.")] = False,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """List lanes and their releases, each with its first figure and the load that it was measured on."""
    space = workspace(ctx, recipes, None)
    rows = [
        row
        for ref in space.catalog.refs()
        if (row := _row(space, ref)) and (everything or row["status"] != "deprecated")
    ]
    if json:
        space.console.document({"schema": SCHEMA, "releases": rows})
        return 0
    cells = [
        [
            row["lane"],
            row["release"],
            row["status"],
            "yes" if row["pinned"] else "no",
            row["title"],
            row["headline"] or "-",
        ]
        for row in rows
    ]
    for line in table(("LANE", "RELEASE", "STATUS", "PINNED", "TITLE", "FIGURE"), cells):
        space.console.result(line)
    return 0


def _row(space: Workspace, ref: str) -> dict[str, Any] | None:
    found = space.catalog.find(ref)
    loaded = space.loader.load_file(found)
    recipe = loaded.recipe
    if recipe is None:
        space.console.message(f"{found.path} is not a valid recipe, and left out{_why(loaded)}", "warning")
        return None
    return {
        "lane": recipe.lane,
        "release": recipe.release,
        "title": recipe.title,
        "status": recipe.status,
        "extends": loaded.parent,
        "pinned": pin_path(found.path).is_file(),
        "headline": _headline(recipe),
        "file": str(found.path),
    }


def _why(loaded: LoadedRecipe) -> str:
    """The first problem: some of them are none to `lint`, which may not take its directory for one of recipes."""
    first = next((found for found in loaded.problems if found.severity == "error"), None)
    where = f"line {first.line}: " if first is not None and first.line else ""
    return f": {where}{first.message}" if first is not None else ""


def _headline(recipe: Recipe) -> str | None:
    return _figure(recipe.evidence[0]) if recipe.evidence else None


def _figure(evidence: EvidenceSection) -> str:
    return f"{evidence.figure}: {evidence.value} {evidence.unit} ({evidence.workload})"
