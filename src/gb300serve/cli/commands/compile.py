"""`gb300serve compile`."""

import importlib
from typing import Annotated, Literal

import typer

from gb300serve.app.workspace import Workspace, workspace
from gb300serve.cli.parameters import Json, RecipeDirs, Ref, Sets, SiteFile, Station
from gb300serve.plan.model import Plan
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import Recipe
from gb300serve.render.docker_run import plan_document, shell


def run(
    ctx: typer.Context,
    ref: Ref,
    to: Annotated[
        Literal["shell", "json", "compose", "quadlet", "kubernetes"], typer.Option("--to", help="The form.")
    ] = "shell",
    image_ref: Annotated[
        Literal["digest", "tag"], typer.Option("--image-ref", help="How the image is named.")
    ] = "digest",
    sets: Sets = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Compile a release to the exact command that launches it, or to a file for another runtime."""
    space = workspace(ctx, recipes, site, station)
    loaded, recipe = space.shareable(ref, sets)
    plan = space.compile(loaded, recipe, image_ref)
    text = shell(plan) if to in ("shell", "json") else _targeted(to, space, loaded, recipe, plan)
    if json or to == "json":
        space.console.document(plan_document(plan, space.notes))
    else:
        space.say_notes()
        space.console.result(text.removesuffix("\n"))
    return 0


def _targeted(to: str, space: Workspace, loaded: LoadedRecipe, recipe: Recipe, plan: Plan) -> str:
    """The file for another runtime; what it does not say is noted."""
    # Loaded when one is asked for: together they add 6 % to the start of every other `compile` (scripts/bench).
    targeting = importlib.import_module("gb300serve.app.targets")
    text, gaps = targeting.targeted(to, plan, loaded, recipe)
    space.notes += gaps
    return str(text)
