"""Any paste ends in a recipe or in a clean refusal, soon, and tells no secret."""

import json
import random

import pytest

from gb300serve.core.errors import CompileError, RecipeError
from gb300serve.recipe.dump import to_yaml
from gb300serve.render.plan_json import plan_document
from tests.support.fuzz_pastes import SECRETS, paste
from tests.support.imports import read

# One loop of 100,000 takes half an hour: these run in seconds, with other seeds each.
PASTES = 400


def outcome(text: str) -> str:
    """Everything that is printed of an import."""
    try:
        found = read(text)
    except (CompileError, RecipeError) as error:
        return " ".join((error.message, error.hint or "", *(json.dumps(d.as_json()) for d in error.diagnostics)))
    plan = json.dumps(plan_document(found.plan), default=str)
    return " ".join((to_yaml(found.document), plan, *(json.dumps(d.as_json()) for d in found.diagnostics)))


@pytest.mark.parametrize("seed", range(8))
def test_pastes(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(PASTES):
        text = paste(chance)
        said = outcome(text)
        assert [secret for secret in SECRETS if secret[:12] in said] == [], text


@pytest.mark.parametrize(
    "text",
    [
        "docker run i:1 " + "$(" * 20_000,
        "docker run i:1 " + "${A:-" * 20_000,
        "docker run i:1 " + "{" * 20_000,
        "docker run i:1 " + '{"a":' * 5_000,
        "docker run i:1 " + "[" * 20_000 + "]" * 20_000,
        "docker run i:1 " + '"' * 20_001,
        "docker run i:1 " + "\\\n" * 50_000,
        "docker run i:1 " + "--a " * 50_000,
        "A=" + "x" * 1000 + "\n" + "A=$A$A\n" * 40 + "docker run i:1 $A\n",
        "docker run i:1 \\\n" + "  \u2014x \u201cy\u201d \\ \n" * 10_000,
        "A=${A:-$A}\ndocker run i:1 $A\n",
        "cat <<E\n" * 5_000 + "docker run i:1\n",
        "`" * 30_001,
        " " * 200_000 + "docker run i:1",
        "docker run -e " + "a" * 500_000 + " i:1",
    ],
    ids=lambda text: text[:24],
)
def test_what_could_take_long(text: str) -> None:
    assert outcome(text)
