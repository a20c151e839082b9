"""The JSON Schema of a recipe file: the model's, loosened by what a child may leave out, remove and add to."""

from typing import Any

import yaml

from gb300serve.core.values import WrittenFloat
from gb300serve.document.read import is_plain_text
from gb300serve.recipe.load import NOT_INHERITED
from gb300serve.recipe.model import Recipe


class _RecipeDumper(yaml.SafeDumper):
    """Block style outside, flow style for what holds no further collection."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        """A value that stands in two places is written twice: a recipe has no aliases."""
        return True


def _text(dumper: _RecipeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if is_plain_text(value) else '"')


def _fraction(dumper: _RecipeDumper, value: WrittenFloat) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:float", value.text)


_RecipeDumper.add_representer(str, _text)
_RecipeDumper.add_representer(WrittenFloat, _fraction)
_RecipeDumper.add_multi_representer(dict, yaml.SafeDumper.represent_dict)
_RecipeDumper.add_multi_representer(list, yaml.SafeDumper.represent_list)


def to_yaml(value: Any) -> str:
    """YAML 1.1 that `document.read.parse` reads as `value`."""
    return yaml.dump(
        value, Dumper=_RecipeDumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=120
    )


def recipe_schema() -> dict[str, Any]:
    """What an editor checks while a recipe is written; `lint` checks the recipe that it resolves to."""
    schema = Recipe.model_json_schema()
    alone = {"required": _required(schema), "properties": _nested(schema)}
    for section in (schema, *schema["$defs"].values()):
        section.pop("required", None)
        section["patternProperties"] = {r"^\+": {"type": ["object", "array"]}}
        section["properties"] = {key: _or_null(value) for key, value in section.get("properties", {}).items()}
    return schema | {"required": list(NOT_INHERITED), "if": {"not": {"required": ["extends"]}}, "then": alone}


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
