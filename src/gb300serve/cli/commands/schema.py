"""`gb300serve schema`."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from gb300serve.recipe.site import Site
from gb300serve.recipe.write import recipe_schema

SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {"recipe": recipe_schema, "site": Site.model_json_schema}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def run(
    ctx: typer.Context,
    what: Annotated[Literal["recipe", "site"], typer.Argument(help="The file.")] = "recipe",
) -> int:
    """Print the JSON Schema of our files, for editors."""
    _, console = ctx.obj
    console.document({"$schema": DIALECT} | SCHEMAS[what]())
    return 0
