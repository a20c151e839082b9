import pytest

from gb300serve.core.values import Value
from gb300serve.engines.vllm.schedule import SpeculationOptions, Tier, speculation


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
