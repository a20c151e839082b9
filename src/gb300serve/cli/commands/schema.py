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
    file: Annotated[Literal["recipe", "site"], typer.Argument(help="The kind of file.")] = "recipe",
) -> int:
    """Print the JSON Schema of recipes or of the site file, for editors."""
    _, console = ctx.obj
    console.document({"$schema": DIALECT} | SCHEMAS[file]())
    return 0
