"""`gb300serve compile`."""

from typing import Annotated, Literal

import typer

from gb300serve.cli.parameters import Json, RecipeDirs, Ref, Sets, SiteFile
from gb300serve.cli.targeting import TARGETS, diagnostic, serving_of
from gb300serve.cli.workspace import workspace
from gb300serve.render.docker_run import shell
from gb300serve.render.plan_json import plan_document


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
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Compile a release to the exact command that launches it, or to a file for another runtime."""
    space = workspace(ctx, recipes, site)
    loaded, recipe = space.load(ref, sets)
    plan = space.compile(loaded, recipe, image_ref)
    text = ""
    if to in TARGETS:
        rendered = TARGETS[to](plan, serving_of(recipe))
        text = rendered.text
        space.notes += [diagnostic(gap, loaded) for gap in rendered.gaps]
    if json or to == "json":
        space.console.document(plan_document(plan, space.notes))
    else:
        space.say_notes()
        space.console.result((text or shell(plan)).removesuffix("\n"))
    return 0
