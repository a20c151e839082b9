from dataclasses import replace

import pytest

from gb300serve.autotune.identity import Effect
from gb300serve.compare.costs import (
    EvidencePair,
    RecordedIdentity,
    ReleaseSummary,
    TuningVerdict,
    costs,
    evidence_pairs,
    recorded_identity,
    tuning_range,
    tuning_verdict,
)
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.fit.checkpoint import known_checkpoints
from gb300serve.fit.memory import memory_plan, request_of_boot
from gb300serve.fit.request import MemoryRequest, SpeculationRequest, request_from_options
from gb300serve.recipe.model import EvidenceSection

FLASH = known_checkpoints()[0]
BOOTS = {boot.name: boot for boot in FLASH.boots}
NEW = Effect("a", "changes", "b", "engine.options.max_num_seqs")


def facts(name: str) -> ReleaseSummary:
    boot = BOOTS[name]
    plan = memory_plan(FLASH, request_from_options(boot.settings, boot.engine_version, boot.variant))
    return ReleaseSummary(
        boot.engine_version, plan, 100, (4440, 4800), RecordedIdentity(boot.figures["autotune"], name)
    )


def test_v11_to_v12_takes_experts_back_into_hbm() -> None:
    found = costs(facts("v11"), facts("v12"), [NEW], restart=True)
    assert round(found.back_in_hbm_gib or 0, 2) == 12.66
    document = found.as_json()
    assert list(document)[:4] == ["restart", "autotune", "kv_cache_gib", "boot_seconds"]
    assert document["kv_cache_gib"] == [10.05, 4.89]
    assert document["kv_cache_basis"] == ["measured", "measured"]
    assert document["offloaded_gib"] == [73.8281, 61.1719]
    assert document["grace_gib"] == [[262.6587, 404.0], [250.0024, 380.0]]
    assert (document["autotune"], document["tuning_seconds"], document["boot_seconds"]) == ("new", 4800, [100, 100])


def test_a_recorded_tuning_time_goes_before_the_usual_one() -> None:
    after = replace(facts("v12"), recorded=RecordedIdentity("cbf5ea8f", "another", 4800))
    assert costs(facts("v12"), after, [NEW], restart=True).tuning_seconds == (4800, 4800)
    assert costs(facts("v12"), facts("v12"), [NEW], restart=True).tuning_seconds is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [("v18", (948, 948)), ("v21", (948, 948)), ("v12", (4440, 4800)), ("v20", (963, 963))],
)
def test_tuning_takes_as_long_as_boots_with_the_same_placement(name: str, expected: tuple[float, float]) -> None:
    assert tuning_range(FLASH, request_of_boot(BOOTS[name])) == expected


def test_another_launch_with_the_hook_tunes_for_a_quarter_of_an_hour() -> None:
    request = replace(request_of_boot(BOOTS["v18"]), max_num_seqs=20)
    assert tuning_range(FLASH, request) == (948, 1019)
    assert tuning_range(replace(FLASH, boots=()), request) is None


def test_the_ledger_speaks_of_what_the_second_has_alone() -> None:
    one, other = (Diagnostic("REC002", "tried-before", "note", message) for message in ("slow", "slower"))
    found = costs(ReleaseSummary(ledger=(one,)), ReleaseSummary(ledger=(one, other)), [NEW], restart=True)
    assert found.ledger == (other,)


def test_what_is_not_known_is_null() -> None:
    found = costs(ReleaseSummary(), ReleaseSummary(), [], restart=False)
    assert (found.back_in_hbm_gib, found.tuning_seconds) == (None, None)
    assert found.as_json()["kv_cache_gib"] == [None, None]


def figure(name: str, value: float, workload: str = "prose") -> EvidenceSection:
    return EvidenceSection(figure=name, value=value, unit="tok/s", workload=workload, method="m")


def test_the_same_figure_on_the_same_workload_is_one_pair() -> None:
    before = [figure("1 stream", 80.0), figure("8 streams", 0)]
    after = [figure("8 streams", 5), figure("1 stream", 90.0), figure("1 stream", 70.0, "agents")]
    found = evidence_pairs(before, after)
    assert found == (
        EvidencePair("1 stream", "tok/s", "prose", 80.0, 90.0),
        EvidencePair("8 streams", "tok/s", "prose", 0, 5),
        EvidencePair("1 stream", "tok/s", "agents", None, 70.0),
    )
    assert [pair.percent for pair in found] == [12.5, None, None]


V12 = next(boot for boot in FLASH.boots if boot.name == "v12")
OPTIONS = dict(V12.settings)
DEMAND = request_from_options(OPTIONS, V12.engine_version)

KEEPS = Effect("a", "keeps", "r1", "engine.options.a")
CHANGES = Effect("b", "changes", "r2", "engine.options.b")
UNKNOWN = Effect("c", "unknown", "r3", "engine.options.c")


def drafting(*schedule: tuple[int, int, int]) -> MemoryRequest:
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
    found = recorded_identity(FLASH, drafting(*schedule), OPTIONS)
    assert (found.identity[:8] if found else None) == identity


def test_what_is_no_part_of_the_identity_finds_the_same_record() -> None:
    hooked = replace(drafting((1, 4, 5), (5, 16, 1)), variant="pin-hot-experts", gpu_memory_utilization=0.9)
    identity = BOOTS["v12"].figures["autotune"]
    assert recorded_identity(FLASH, hooked, OPTIONS) == RecordedIdentity(identity, "v15", 290, 21)
    assert recorded_identity(FLASH, replace(hooked, variant=None), {**OPTIONS, "port": 1}) == RecordedIdentity(
        identity, "v14"
    )


def test_what_is_or_may_be_part_of_it_finds_none() -> None:
    for demand in (
        replace(DEMAND, cpu_offload_gb=61),
        replace(DEMAND, max_num_seqs=24),
        replace(DEMAND, others=(("a", "1"),)),
    ):
        assert recorded_identity(FLASH, demand, OPTIONS) is None
    assert recorded_identity(FLASH, DEMAND, {**OPTIONS, "model": "/other"}) is None
    assert recorded_identity(FLASH, DEMAND, {**OPTIONS, "trust_remote_code": None}) is None


@pytest.mark.parametrize(
    ("before", "after", "effects", "verdict"),
    [
        (None, None, [], TuningVerdict("same", "the launch does not differ")),
        ("9ac7b387", "9ac7b387ff", [CHANGES], TuningVerdict("same", "both were recorded as 9ac7b387")),
        ("08c89d94…4796", "9ac7b387", [KEEPS], TuningVerdict("new", "recorded as 08c89d94 before, 9ac7b387 after")),
        ("9ac7b387", None, [KEEPS, UNKNOWN, CHANGES], TuningVerdict("new", "b is part of the identity: r2")),
        ("9ac7b387", None, [KEEPS, UNKNOWN], TuningVerdict("unknown", "c: r3")),
        (None, "9ac7b387", [KEEPS], TuningVerdict("same", "no field that differs is part of the identity")),
    ],
)
def test_a_record_goes_before_reasoning(
    before: str | None, after: str | None, effects: list[Effect], verdict: TuningVerdict
) -> None:
    sides = [RecordedIdentity(name, "boot") if name else None for name in (before, after)]
    assert tuning_verdict(sides[0], sides[1], effects) == verdict
