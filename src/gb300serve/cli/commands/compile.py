"""`gb300serve compile`."""

import importlib
from typing import Annotated, Literal

import typer

from gb300serve.app.workspace import Workspace, workspace
from gb300serve.cli.parameters import Json, RecipeDirs, Ref, Sets, SiteFile, Station
from gb300serve.plan.model import Plan
from gb300serve.recipe.load import Loaded
from gb300serve.recipe.model import Recipe
from gb300serve.render.docker_run import plan_document, shell_text


def run(
    ctx: typer.Context,
    ref: Ref,
    to: Annotated[
        Literal["shell", "json", "compose", "quadlet", "kubernetes"], typer.Option("--to", help="The output format.")
    ] = "shell",
    image_ref: Annotated[
        Literal["digest", "tag"], typer.Option("--image-ref", help="Name the image by digest or by tag.")
    ] = "digest",
    sets: Sets = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Compile a release to the command that launches it, or to a file for another runtime."""
    space = workspace(ctx, recipes, site, station)
    loaded, recipe = space.shareable(ref, sets)
    plan = space.compile(loaded, recipe, image_ref)
    text = shell_text(plan) if to in ("shell", "json") else _render_target(to, space, loaded, recipe, plan)
    if json or to == "json":
        space.console.document(plan_document(plan, space.notes))
    else:
        space.say_notes()
        space.console.result(text.removesuffix("\n"))
    return 0


def _render_target(to: str, space: Workspace, loaded: Loaded, recipe: Recipe, plan: Plan) -> str:
    """The file for another runtime; its gaps become notes."""
    # Loaded on demand: the targets add 6 % to the start of every other `compile` (scripts/bench).
    targets = importlib.import_module("gb300serve.app.targets")
    text, gaps = targets.render_target(to, plan, loaded, recipe)
    space.notes += gaps
    return str(text)
