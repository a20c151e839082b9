"""`gb300serve schema`."""

from typing import Annotated, Any, Literal

import typer
from pydantic import BaseModel

from gb300serve.recipe.model import Recipe
from gb300serve.site.model import Site

MODELS: dict[str, type[BaseModel]] = {"recipe": Recipe, "site": Site}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def run(
    ctx: typer.Context,
    what: Annotated[Literal["recipe", "site"], typer.Argument(help="The file.")] = "recipe",
) -> int:
    """Print the JSON Schema of our files, for editors."""
    _, console = ctx.obj
    schema: dict[str, Any] = MODELS[what].model_json_schema()
    console.document(
        {
            "$schema": DIALECT,
        }
        | schema
    )
    return 0
