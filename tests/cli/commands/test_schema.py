from pathlib import Path

import jsonschema  # type: ignore[import-untyped] # its stubs would be one more dependency for a few tests
import yaml

from tests.support.invoke import run


def test_the_site() -> None:
    schema = run("schema", "site").document
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    reference = yaml.safe_load((Path(__file__).parents[3] / "recipes" / "site.yaml").read_text())
    assert list(validator.iter_errors(reference)) == []
    assert list(validator.iter_errors(reference | {"cahce": "/x"})) != []


def test_the_recipe_is_the_default() -> None:
    answer = run("schema")
    assert answer.out == run("schema", "recipe").out
    assert next(iter(answer.document)) == "$schema"
    assert answer.document["properties"]["release"]


def test_another_word() -> None:
    assert run("schema", "lane").code == 2
