"""Every pattern of the formats has words, so that what breaks one can be told what to write."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gb300serve.recipe.site import Site
from gb300serve.recipe.write import recipe_schema
from tests.support.invoke import run


def patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        yield from (found for value in schema.values() for found in patterns(value))
        yield from schema.get("patternProperties") or ()
    elif isinstance(schema, list):
        yield from (found for value in schema for found in patterns(value))


def meanings() -> str:
    return (Path(__file__).parents[2] / "src/gb300serve/document/validate.py").read_text()


# Keys that begin with `+` are the schema's own way to say what a child may merge.
SAID = {*patterns(recipe_schema()), *patterns(Site.model_json_schema())} - {r"^\+"}


@pytest.mark.parametrize("pattern", sorted(SAID))
def test_every_pattern_has_words(pattern: str) -> None:
    re.compile(pattern)
    assert f'r"{pattern}": ' in meanings()


def test_an_address_that_is_none(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text('format: gb300serve.site/1\ndocker: {host: "htp://x"}\n')
    answer = run("compile", "v14", "--site", str(site))
    assert (answer.code, "write an address as in DOCKER_HOST" in answer.err) == (3, True), answer.err
