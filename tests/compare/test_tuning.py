from dataclasses import replace

import pytest

from gb300serve.compare.changes import Effect
from gb300serve.compare.costs import Recorded, TuningVerdict, recorded, tuning
from gb300serve.fit.checkpoint import checkpoints
from gb300serve.fit.request import Demand, SpeculationRequest, demand_of

FLASH = checkpoints()[0]
V12 = next(boot for boot in FLASH.boots if boot.name == "v12")
OPTIONS = dict(V12.settings)
DEMAND = demand_of(OPTIONS, V12.engine_version)

KEEPS = Effect("a", "keeps", "r1", "engine.options.a")
CHANGES = Effect("b", "changes", "r2", "engine.options.b")
UNKNOWN = Effect("c", "unknown", "r3", "engine.options.c")


def drafting(*schedule: tuple[int, int, int]) -> Demand:
    return replace(DEMAND, speculation=SpeculationRequest("dspark", 5, schedule))


@pytest.mark.parametrize(
    ("schedule", "identity"),
    [
        ((), "9ac7b387"),
        (((1, 2, 5), (3, 16, 1)), "9ac7b387"),
        (((1, 2, 5), (3, 4, 3), (5, 16, 1)), "9ac7b387"),
        (((1, 3, 5), (4, 16, 1)), "cbf5ea8f"),
        (((1, 6, 5), (7, 16, 1)), None),
    ],
)
def test_breakpoints_are_on_record_or_unknown(schedule: tuple[tuple[int, int, int], ...], identity: str | None) -> None:
    found = recorded(FLASH, drafting(*schedule), OPTIONS)
    assert (found.identity if found else None) == identity


def test_what_is_no_part_of_the_identity_finds_the_same_record() -> None:
    hooked = replace(drafting((1, 4, 5), (5, 16, 1)), variant="pin-hot-experts", gpu_memory_utilization=0.9)
    assert recorded(FLASH, hooked, OPTIONS) == Recorded("9ac7b387", "v15", 290, 21)
    assert recorded(FLASH, replace(hooked, variant=None), {**OPTIONS, "port": 1}) == Recorded("9ac7b387", "v14")


def test_what_is_or_may_be_part_of_it_finds_none() -> None:
    for demand in (
        replace(DEMAND, cpu_offload_gb=61),
        replace(DEMAND, max_num_seqs=24),
        replace(DEMAND, others=(("a", "1"),)),
    ):
        assert recorded(FLASH, demand, OPTIONS) is None
    assert recorded(FLASH, DEMAND, {**OPTIONS, "model": "/other"}) is None
    assert recorded(FLASH, DEMAND, {**OPTIONS, "trust_remote_code": None}) is None


@pytest.mark.parametrize(
    ("before", "after", "effects", "verdict"),
    [
        (None, None, [], TuningVerdict("same", "nothing that is launched differs")),
        ("9ac7b387", "9ac7b387ff", [CHANGES], TuningVerdict("same", "both were recorded as 9ac7b387")),
        ("08c89d94…4796", "9ac7b387", [KEEPS], TuningVerdict("new", "recorded as 08c89d94 before, 9ac7b387 after")),
        ("9ac7b387", None, [KEEPS, UNKNOWN, CHANGES], TuningVerdict("new", "b is part of its identity, r2")),
        ("9ac7b387", None, [KEEPS, UNKNOWN], TuningVerdict("unknown", "c: r3")),
        (None, "9ac7b387", [KEEPS], TuningVerdict("same", "none of the fields that differ is part of its identity")),
    ],
)
def test_a_record_goes_before_reasoning(
    before: str | None, after: str | None, effects: list[Effect], verdict: TuningVerdict
) -> None:
    sides = [Recorded(name, "boot") if name else None for name in (before, after)]
    assert tuning(sides[0], sides[1], effects) == verdict
