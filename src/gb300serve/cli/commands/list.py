"""`gb300serve list`."""

from typing import Annotated, Any

import typer

from gb300serve.app.workspace import Workspace
from gb300serve.cli.parameters import Json, RecipeDirs, open_workspace
from gb300serve.cli.views.diagnostics import table
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import RETIRED, Recipe
from gb300serve.recipe.write import pin_path

SCHEMA = "gb300serve.list/1"


def run(
    ctx: typer.Context,
    include_retired: Annotated[
        bool, typer.Option("--all", help="Include deprecated, rejected and withdrawn releases.")
    ] = False,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """List lanes and releases, each with its first measured figure."""
    workspace, console = open_workspace(ctx, recipes, None)
    found = filter(None, (_row(workspace, ref) for ref in workspace.catalog.refs()))
    rows = [row for row in found if include_retired or _is_shown(row)]
    if json:
        console.document({"schema": SCHEMA, "releases": rows})
        return 0
    columns = ("lane", "release", "status", "pinned", "title", "headline")
    shown = [row | {"pinned": "yes" if row["pinned"] else "no", "headline": row["headline"] or "-"} for row in rows]
    for row in shown:
        marks = [name for name in ("current", "documented") if row[name]]
        row["status"] = ", ".join((row["status"], *marks))
    cells = [[row[column] for column in columns] for row in shown]
    console.results(table(("LANE", "RELEASE", "STATUS", "PINNED", "TITLE", "FIGURE"), cells))
    return 0


def _is_shown(row: dict[str, Any]) -> bool:
    """The current and the documented release of a lane are always shown."""
    return row["status"] not in RETIRED or row["current"] or row["documented"]


def _row(workspace: Workspace, ref: str) -> dict[str, Any] | None:
    file = workspace.catalog.find(ref)
    loaded = workspace.loader.load_file(file)
    recipe = loaded.recipe
    if recipe is None:
        workspace.console.message(f"{file.path} is not a valid recipe and is skipped{_first_error(loaded)}", "warning")
        return None
    lane = workspace.catalog.lane_file(file.path.parent.name)
    return {
        "lane": recipe.lane,
        "release": recipe.release,
        "title": recipe.title,
        "status": recipe.status,
        "extends": loaded.parent,
        "pinned": pin_path(file.path).is_file(),
        "headline": _headline(recipe),
        "file": str(file.path),
        "current": recipe.release == lane.current,
        "documented": recipe.release == lane.documented,
    }


def _first_error(loaded: LoadedRecipe) -> str:
    """The first error; `lint` does not report all of them."""
    error = next((problem for problem in loaded.problems if problem.severity == "error"), None)
    if error is None:
        return ""
    return f": line {error.line}: {error.message}" if error.line else f": {error.message}"


def _headline(recipe: Recipe) -> str | None:
    first = next(iter(recipe.evidence), None)
    return f"{first.figure}: {first.value} {first.unit} ({first.workload})" if first else None
