"""`gb300serve show`."""

from typing import Annotated

import typer

from gb300serve.cli.parameters import Json, RecipeDirs, Ref, Sets, SiteFile, Station, open_workspace
from gb300serve.core.errors import CommandLineError
from gb300serve.recipe.write import draft_of, to_yaml

SCHEMA = "gb300serve.show/1"


def run(
    ctx: typer.Context,
    ref: Ref,
    sets: Sets = None,
    new: Annotated[
        str | None,
        typer.Option("--as", metavar="NEW", help="Print the beginning of a new release: a child.", show_default=False),
    ] = None,
    copy: Annotated[bool, typer.Option("--copy", help="With --as: a copy instead of a child.")] = False,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Print a release with everything that it inherits, as a self-contained recipe."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    if copy and new is None:
        raise CommandLineError("--copy needs a name for the copy", hint="add --as NEW")
    if sets and new is not None and not copy:
        raise CommandLineError("--set cannot be written into a child", hint="add --copy, or edit the child")
    loaded, recipe = workspace.shareable(ref, sets)
    shown = loaded.root if new is None else draft_of(loaded, recipe, new, copy=copy)
    if json:
        console.document({"schema": SCHEMA, "recipe": shown})
        return 0
    workspace.print_notes()
    console.result(to_yaml(shown).rstrip("\n"))
    if new is not None and not copy:
        console.result(f"# Write below only what differs from {recipe.release}: `gb300serve help recipe`")
    return 0
