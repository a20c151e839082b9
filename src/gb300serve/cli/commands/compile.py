"""`gb300serve compile`."""

from typing import Annotated, Literal

import typer

from gb300serve.app.targets import render_target
from gb300serve.cli.parameters import Json, RecipeDirs, Ref, Sets, SiteFile, Station, open_workspace
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
    workspace, console = open_workspace(ctx, recipes, site, station)
    loaded, recipe = workspace.shareable(ref, sets)
    plan = workspace.compile(loaded, recipe, image_ref)
    if to in ("shell", "json"):
        text = shell_text(plan)
    else:
        text, gaps = render_target(to, plan, loaded, recipe)
        workspace.notes += gaps
    if json or to == "json":
        console.document(plan_document(plan, workspace.notes))
    else:
        workspace.print_notes()
        console.result(text.removesuffix("\n"))
    return 0
