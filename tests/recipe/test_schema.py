from pathlib import Path

import jsonschema  # type: ignore[import-untyped] # its stubs would be one more dependency for one test
import pytest
import yaml

from gb300serve.recipe.write import recipe_schema
from tests.support.recipes import ENGINE, alone, child

SHIPPED = sorted((Path(__file__).parents[2] / "recipes").glob("*/*.yaml"))


def errors(text: str) -> list[str]:
    validator = jsonschema.Draft202012Validator(recipe_schema())
    return [error.message for error in validator.iter_errors(yaml.safe_load(text))]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_recipes_fit(path: Path) -> None:
    assert errors(path.read_text()) == []


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(recipe_schema())


@pytest.mark.parametrize(
    "text",
    [
        alone(),
        child("+limits: [x]\ncontainer: {gpus: null, +mounts: [], secrets: {K: {env: K}}}\n"),
        child("container: {gpus: {name: GB300}, ulimits: {nofile: {soft: 1, hard: 2}}, restart: on-failure:3}\n"),
    ],
)
def test_what_fits(text: str) -> None:
    assert errors(text) == []


@pytest.mark.parametrize(
    "text",
    [
        alone().replace("title:", "titel:"),
        alone(ENGINE + "limits: text\n"),
        alone("limits: []\n"),
        alone("engine: {version: 0.33.0}\n"),
        alone(ENGINE + "container: {gpus: {device: 1}}\n"),
        alone(ENGINE + "container: {gpus: 0}\n"),
        child("status: verifed\n"),
    ],
)
def test_what_does_not_fit(text: str) -> None:
    assert errors(text) != []
