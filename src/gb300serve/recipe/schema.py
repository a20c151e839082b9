"""The JSON Schema of a recipe file: the model's, loosened by what a child may leave out, remove and add to."""

from typing import Any

from gb300serve.recipe.load import STATED
from gb300serve.recipe.model import Recipe


def recipe_schema() -> dict[str, Any]:
    """What an editor checks while a recipe is written; `lint` checks the recipe that it resolves to."""
    schema = Recipe.model_json_schema()
    alone = {"required": _required(schema), "properties": _nested(schema)}
    for section in (schema, *schema["$defs"].values()):
        section.pop("required", None)
        section["patternProperties"] = {r"^\+": {"type": ["object", "array"]}}
        section["properties"] = {key: _or_null(value) for key, value in section.get("properties", {}).items()}
    return schema | {"required": list(STATED), "if": {"not": {"required": ["extends"]}}, "then": alone}


def _required(section: dict[str, Any]) -> list[str]:
    return list(section.get("required", ()))


def _nested(schema: dict[str, Any]) -> dict[str, Any]:
    """What the sections that every recipe has must say: nothing can inherit it to a recipe that stands alone."""
    sections = {key: value["$ref"].rpartition("/")[2] for key, value in schema["properties"].items() if "$ref" in value}
    return {
        key: {"required": required} for key, name in sections.items() if (required := _required(schema["$defs"][name]))
    }


def _or_null(value: dict[str, Any]) -> dict[str, Any]:
    """`null` removes what a parent says."""
    return {"anyOf": [value, {"type": "null"}]}
