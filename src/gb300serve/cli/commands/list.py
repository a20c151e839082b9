"""`gb300serve list`."""

from typing import Annotated, Any

import typer

from gb300serve.app.workspace import Workspace
from gb300serve.cli.parameters import Json, RecipeDirs, open_workspace
from gb300serve.cli.views.table import table
from gb300serve.recipe.load import Loaded
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
    workspace, console = open_workspace(ctx, recipes, None)
    rows = [
        row
        for ref in workspace.catalog.refs()
        if (row := _row(workspace, ref)) and (everything or row["status"] != "deprecated")
    ]
    if json:
        console.document({"schema": SCHEMA, "releases": rows})
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
        console.result(line)
    return 0


def _row(workspace: Workspace, ref: str) -> dict[str, Any] | None:
    found = workspace.catalog.find(ref)
    loaded = workspace.loader.load_file(found)
    recipe = loaded.recipe
    if recipe is None:
        message = f"{found.path} is not a valid recipe and is left out{_why(loaded)}"
        workspace.console.message(message, "warning")
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


def _why(loaded: Loaded) -> str:
    """The first problem: some of them are none to `lint`, which may not take its directory for one of recipes."""
    first = next((found for found in loaded.problems if found.severity == "error"), None)
    where = f"line {first.line}: " if first is not None and first.line else ""
    return f": {where}{first.message}" if first is not None else ""


def _headline(recipe: Recipe) -> str | None:
    return _figure(recipe.evidence[0]) if recipe.evidence else None


def _figure(evidence: EvidenceSection) -> str:
    return f"{evidence.figure}: {evidence.value} {evidence.unit} ({evidence.workload})"
