import pytest

from gb300serve.core.values import Value
from gb300serve.engines.vllm.schedule import SCHEDULE, SpeculationOptions, Tier, check_schedule, speculation, tiers

PLACE = f"speculative_config.{SCHEDULE}"
SHAPE = "write [start, end, tokens]"
FIRST = "the first range must start at 1, so that every batch size has a length"


def told(schedule: Value) -> list[tuple[tuple[str | int, ...], str, str | None]]:
    return [
        (problem.path[2:], problem.message.removeprefix(PLACE), problem.hint)
        for problem in check_schedule({SCHEDULE: schedule})
    ]


@pytest.mark.parametrize(
    "schedule",
    [
        None,
        [[1, 4, 5], [5, 16, 1]],
        [[5, 16, 1], [1, 4, 5]],  # the engine sorts
        [[1, 4, 5], [7, 16, 1]],  # a gap carries the length before it on
        [[1, 4, 0]],
        [[1, 1, 5]],
        [[1, 999, 99]],
    ],
)
def test_what_the_engine_takes(schedule: Value) -> None:
    assert told(schedule) == []


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ([], [((), " is empty", "write at least [1, N, tokens], or leave it out")]),
        ({"1": 5}, [((), ' is {"1":5}, not a list of [start, end, tokens]', None)]),
        ([[1, 4]], [((0,), ".0 is [1,4], not three whole numbers", SHAPE)]),
        ([[1, 4, 5], [5, 16, "1"]], [((1,), '.1 is [5,16,"1"], not three whole numbers', SHAPE)]),
        ([[1, 4, True]], [((0,), ".0 is [1,4,true], not three whole numbers", SHAPE)]),
        ([[4, 1, 5]], [
            ((0,), ".0 is [4, 1, 5]: it ends before it starts", "write [1, 4, 5]"),
            ((0,), f".0 starts at 4: {FIRST}", "write [1, 1, 5]"),
        ]),
        ([[0, 4, 5]], [((0,), ".0 is [0, 4, 5]: batch sizes count from 1", "write a start and an end of at least 1")]),
        ([[1, 4, -1]], [((0,), ".0 is [1, 4, -1]: fewer than no tokens", "write 0 to draft nothing")]),
        ([[1, 4, 5], [4, 16, 1]], [((1,), ".1 starts at 4, inside the range before it, which ends at 4", None)]),
        ([[4, 16, 1], [1, 4, 5]], [((0,), ".0 starts at 4, inside the range before it, which ends at 4", None)]),
        ([[2, 4, 5]], [
            ((0,), f".0 starts at 2: {FIRST}", "write [1, 4, 5]"),
        ]),
    ],
)  # fmt: skip
def test_what_the_engine_refuses(schedule: Value, expected: list[tuple[tuple[int, ...], str, str | None]]) -> None:
    assert told(schedule) == expected


def test_every_problem_has_its_own_code_and_the_usual_severity() -> None:
    assert {(problem.code, problem.severity) for problem in check_schedule({SCHEDULE: []})} == {("OPT010", None)}


def test_tiers_leave_other_shapes_out() -> None:
    assert tiers([[1, 4, 5], [5, 16], "x", [6, 7, True]]) == ((1, 4, 5),)
    assert tiers(None) == ()


def test_the_typed_form() -> None:
    written: Value = {
        "method": "dspark",
        "num_speculative_tokens": 5,
        "num_speculative_tokens_per_batch_size": [[5, 16, 1], [1, 4, 5]],
    }
    assert speculation(written) == SpeculationOptions("dspark", None, 5, (Tier(1, 4, 5), Tier(5, 16, 1)))


def test_wrong_types_count_as_not_given() -> None:
    assert speculation({"method": 1, "model": "/draft", "num_speculative_tokens": True}) == SpeculationOptions(
        None, "/draft", None, ()
    )
    assert speculation(None) is None
    assert speculation("dspark") is None


@pytest.mark.parametrize(
    ("schedule", "batches"),
    [
        ((), {1: 5, 99: 5}),
        ((Tier(1, 4, 5), Tier(5, 16, 1)), {1: 5, 4: 5, 5: 1, 16: 1, 17: 1}),
        ((Tier(1, 4, 5), Tier(7, 16, 1)), {5: 5, 6: 5, 7: 1}),
        ((Tier(1, 4, 9), Tier(5, 16, 0)), {1: 5, 5: 0}),
    ],
)
def test_draft_length_at_a_batch_size(schedule: tuple[Tier, ...], batches: dict[int, int]) -> None:
    drafter = SpeculationOptions("dspark", None, 5, schedule)
    assert {batch: drafter.tokens_at(batch) for batch in batches} == batches


def test_draft_length_without_a_stated_number() -> None:
    assert SpeculationOptions("dspark", None, None, (Tier(1, 4, 5),)).tokens_at(9) == 5
    assert SpeculationOptions("dspark", None, None, ()).tokens_at(1) == 0
