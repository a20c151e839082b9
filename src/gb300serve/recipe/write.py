"""Writing recipes as YAML, and the JSON Schema of the format."""

from typing import Any

import yaml

from gb300serve.core.values import WrittenFloat
from gb300serve.document.read import is_plain_text
from gb300serve.recipe.load import NOT_INHERITED
from gb300serve.recipe.model import Recipe


class _RecipeDumper(yaml.SafeDumper):
    """Block style, and flow style for collections of scalars."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        """Write a value that occurs twice both times: recipes have no aliases."""
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
    """YAML that `document.read.parse` reads as `value`."""
    return yaml.dump(
        value, Dumper=_RecipeDumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=120
    )


def recipe_schema() -> dict[str, Any]:
    """The schema for editors. It checks one file as written; `lint` checks the resolved recipe."""
    schema = Recipe.model_json_schema()
    without_parent = {"required": _required(schema), "properties": _nested(schema)}
    for section in (schema, *schema["$defs"].values()):
        section.pop("required", None)
        section["patternProperties"] = {r"^\+": {"type": ["object", "array"]}}
        section["properties"] = {key: _or_null(value) for key, value in section.get("properties", {}).items()}
    return schema | {"required": list(NOT_INHERITED), "if": {"not": {"required": ["extends"]}}, "then": without_parent}


def _required(section: dict[str, Any]) -> list[str]:
    return list(section.get("required", ()))


def _nested(schema: dict[str, Any]) -> dict[str, Any]:
    """The required keys of each section, for a recipe without a parent."""
    sections = {key: value["$ref"].rpartition("/")[2] for key, value in schema["properties"].items() if "$ref" in value}
    return {
        key: {"required": required} for key, name in sections.items() if (required := _required(schema["$defs"][name]))
    }


def _or_null(value: dict[str, Any]) -> dict[str, Any]:
    """Also allow `null`, which removes the parent's value."""
    return {"anyOf": [value, {"type": "null"}]}
