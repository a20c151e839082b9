"""Any paste ends in a recipe or in a clean refusal, soon, and tells no secret."""

import math
import random

import pytest

from tests.support.fuzz_pastes import judge_paste, outcome, paste
from tests.support.long import LONG

# A slice of what scripts/fuzz runs.
PASTES = 4000 if LONG else 250


@pytest.mark.parametrize("seed", range(8))
def test_pastes(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(PASTES):
        text = paste(chance)
        assert judge_paste(text.encode("utf-8", "surrogatepass"), math.inf) is None, text


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
        "docker run -p 8\u2460 i:1 /m",
        f"docker run -p {'9' * 5000}:80 i:1 /m",
    ],
    ids=lambda text: text[:24],
)
def test_what_could_take_long(text: str) -> None:
    assert outcome(text)
