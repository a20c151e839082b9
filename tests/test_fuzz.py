"""A fixed slice of scripts/fuzz, and proof that its judges see faults. Times do not decide here."""

import math
from pathlib import Path

import pytest

from tests.support.fuzz_judges import BrokenError, Failure, RecipeJudge, judge_log, judged, smaller
from tests.support.fuzz_logs import LogMutator
from tests.support.fuzz_recipes import Mutator
from tests.support.long import LONG

RECIPES, LOGS, PARTS = (12_000, 2400, 8) if LONG else (1200, 240, 4)


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_recipes_come_to_findings_or_clean_errors(part: int, tmp_path: Path) -> None:
    judge, mutator = RecipeJudge(tmp_path), Mutator(part)
    failures = {}
    for number in range(RECIPES // PARTS):
        recipe = mutator.recipe(f"f{number}")
        failure = judge.judge(recipe, f"f{number}", math.inf, lint_only=number % 6 > 0)
        if failure:
            failures[recipe] = failure
    assert failures == {}


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_logs_come_to_a_diagnosis(part: int) -> None:
    mutator = LogMutator(part)
    logs = [mutator.log() for _ in range(LOGS // PARTS)]
    assert {log: failure for log in logs if (failure := judge_log(log, math.inf))} == {}


def test_the_same_seed_gives_the_same() -> None:
    assert [Mutator(7).recipe("f1") for _ in range(2)] == [Mutator(7).recipe("f1")] * 2
    assert LogMutator(7).log() == LogMutator(7).log()
    assert Mutator(7).recipe("f1") != Mutator(8).recipe("f1")


def test_an_exception_is_seen_with_its_place() -> None:
    def fails() -> None:
        raise KeyError("x")

    failure = judged(fails)
    assert failure is not None
    assert failure.kind == "KeyError in test_fuzz.py:fails"


def test_a_broken_output_is_seen() -> None:
    def fails() -> None:
        raise BrokenError("JSON: NaN is none")

    assert judged(fails) == Failure("broken: JSON", "JSON: NaN is none")


def test_what_takes_too_long_is_seen() -> None:
    failure = judged(lambda: None, -1.0)
    assert failure is not None
    assert failure.kind == "slow"


def test_a_fault_is_made_small() -> None:
    lines = [b"%d" % number for number in range(200)]
    assert smaller(lines, lambda left: b"13" in left and b"170" in left) == [b"13", b"170"]
