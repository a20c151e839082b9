from dataclasses import replace

import pytest

from gb300serve.fit.checkpoint import Checkpoint, known_checkpoints
from gb300serve.fit.hardware import STATION, GraceMemory
from gb300serve.fit.request import MemoryRequest, SpeculationRequest, request_from_options
from gb300serve.fit.result import (
    FitResult,
    InvalidSweepError,
    Sweep,
    SweepStep,
    fit_diagnostics,
    fit_document,
    fit_result,
    host_sentence,
    nearest_settings,
    parse_sweep,
    repeated_steps,
    sweep_document,
    with_nearest_settings,
)

FLASH = known_checkpoints()[0]
V14 = next(boot for boot in FLASH.boots if boot.name == "v14")
DEMAND = request_from_options(V14.settings, V14.engine_version)


def test_measured_and_computed_stand_side_by_side() -> None:
    found = fit_result(FLASH, DEMAND)
    assert (found.verdict, found.plan.basis, found.computed.basis) == ("fits", "measured", "computed")
    assert found.measured_gib == 4.87
    assert abs((found.computed.hbm.kv_cache_gib or 0) - 4.88) < 0.03
    assert round(found.margin_gib or 0, 2) == 2.67
    assert with_nearest_settings(FLASH, found) is found


def test_what_was_changed_is_computed() -> None:
    found = fit_result(FLASH, DEMAND, changed=True)
    assert (found.plan.basis, found.measured_gib, found.plan) == ("computed", None, found.computed)


def test_the_worse_memory_decides() -> None:
    short = fit_result(FLASH, DEMAND, grace=GraceMemory(380.0, "MemAvailable"))
    assert (short.verdict, short.plan.verdict, short.host_verdict) == ("short", "fits", "short")
    refused = with_nearest_settings(FLASH, fit_result(FLASH, replace(DEMAND, cpu_offload_gb=55)))
    assert (refused.verdict, refused.host_verdict, len(refused.nearest or ())) == ("refused", "fits", 2)
    unknown = fit_result(replace(FLASH, boots=()), DEMAND, grace=GraceMemory(380.0, "MemAvailable"))
    assert (unknown.verdict, unknown.margin_gib) == ("unknown", None)


def asked(gigabytes: int) -> MemoryRequest:
    return request_from_options({**V14.settings, "cpu_offload_gb": gigabytes}, V14.engine_version)


def found(gigabytes: int) -> FitResult:
    return fit_result(FLASH, asked(gigabytes), changed=True)


def test_keys_and_their_order() -> None:
    shown = fit_document("a/b", asked(60), found(60), ())
    assert list(shown) == [
        "schema", "verdict", "hbm", "host", "kv_cache_tokens", "concurrency_at_max_len", "basis", "diagnostics",
        "details",
    ]  # fmt: skip
    assert shown["hbm"] == {
        "visible_gib": 250.6865, "usable_gib": 242.3192, "weights_gib": 225.2639, "overhead_gib": 12.1767,
        "kv_cache_gib": 4.8786,
    }  # fmt: skip
    assert shown["host"] == {
        "asked_gib": 60.0, "offloaded_gib": 61.1719, "engram_gib": 188.8305, "resident_gib": 380.0,
        "available_gib": 466.0,
    }  # fmt: skip


def test_nothing_known_keeps_every_key() -> None:
    shown = fit_document("a/b", MemoryRequest(cpu_offload_gb=10.0), None, ())
    assert (shown["verdict"], shown["basis"], shown["details"]) == (
        "unknown",
        "assumed",
        {"recipe": "a/b", "gpu": "GB300", "total_gib": 249.8136, "total_basis": "measured"},
    )
    assert shown["hbm"] == {
        "visible_gib": 250.6865, "usable_gib": 229.8285, "weights_gib": None, "overhead_gib": None,
        "kv_cache_gib": None,
    }  # fmt: skip
    assert shown["host"] == {
        "asked_gib": 10.0, "offloaded_gib": None, "engram_gib": None, "resident_gib": None, "available_gib": None,
    }  # fmt: skip


def test_steps_that_come_to_the_same_launch() -> None:
    steps = [SweepStep(str(value), found(value)) for value in (56, 57, 58, 61, 62)]
    assert repeated_steps(steps) == [False, False, True, True, False]
    rows = sweep_document("engine.options.cpu_offload_gb", steps)
    assert [(row["value"], row["offloaded_gib"], row["verdict"], row["same_as_before"]) for row in rows] == [
        ("56", 56.9531, "refused", False),
        ("57", 61.1719, "fits", False),
        ("58", 61.1719, "fits", True),
        ("61", 61.1719, "fits", True),
        ("62", 63.2812, "fits", False),
    ]


def test_steps_without_an_answer() -> None:
    rows = sweep_document("a", [SweepStep("1", None), SweepStep("2", None)])
    assert [(row["verdict"], row["kv_cache_gib"], row["same_as_before"]) for row in rows] == [
        ("unknown", None, False),
        ("unknown", None, True),
    ]


def found_nearest(demand: MemoryRequest, grace: GraceMemory = STATION) -> list[tuple[str, int | float, float]]:
    return [
        (one.option, one.value, round(one.plan.hbm.kv_cache_gib or 0, 2))
        for one in nearest_settings(FLASH, demand, grace)
    ]


def test_offload_55_as_the_boot_told_it() -> None:
    assert found_nearest(replace(DEMAND, cpu_offload_gb=55)) == [
        ("cpu_offload_gb", 57, 4.88),
        ("max_model_len", 123264, 6.23),
    ]


def test_the_share_of_the_gpu_goes_up_to_what_ever_booted() -> None:
    ways = found_nearest(replace(DEMAND, gpu_memory_utilization=0.94))
    assert ways[:2] == [("cpu_offload_gb", 64, 3.71), ("gpu_memory_utilization", 0.96, 2.38)]
    assert ways[2][0] == "max_model_len"


def test_less_than_nothing_left_halves_the_context() -> None:
    assert found_nearest(replace(DEMAND, cpu_offload_gb=54))[-1][:2] == ("max_model_len", 524288)


def test_too_much_for_the_host_is_offloaded_less() -> None:
    assert found_nearest(replace(DEMAND, cpu_offload_gb=200))[-1][:2] == ("cpu_offload_gb", 94)
    assert found_nearest(replace(DEMAND, cpu_offload_gb=60), GraceMemory(380.0, "MemAvailable"))[:1] == []


def test_without_matching_patterns_no_offload_helps() -> None:
    ways = found_nearest(replace(DEMAND, cpu_offload_params=("experts.*",)))
    assert "cpu_offload_gb" not in [option for option, _, _ in ways]


def said(demand: MemoryRequest, known: Checkpoint = FLASH) -> list[tuple[str, str, str]]:
    return [
        (one.code, one.severity, one.message)
        for one in fit_diagnostics(fit_result(known, demand, changed=True), known.boots)
    ]


def test_nothing_beside_what_is_computed() -> None:
    assert said(DEMAND) == []


def test_settings_that_no_boot_had_are_named() -> None:
    start, end = "no boot was measured with these settings (", "): using the nearest boots"
    for demand, what in (
        (replace(DEMAND, max_num_seqs=2400), "max_num_seqs 2,400"),
        (replace(DEMAND, engine_version="0.32.0"), "engine_version 0.32.0"),
        (replace(DEMAND, others=(("language_model_only", "true"),)), "other_options language_model_only true"),
        (replace(DEMAND, speculation=SpeculationRequest("dspark", 2)), "draft_tokens 2"),
        (replace(DEMAND, max_model_len=262144), "max_model_len 262,144"),
        (replace(DEMAND, capture_sizes=(1, 8)), "capture_sizes 1; 8"),
    ):
        assert said(demand) == [("FIT002", "note", start + what + end)]


def test_nothing_measured_at_all() -> None:
    assert [one[:2] for one in said(DEMAND, replace(FLASH, boots=()))] == [("FIT001", "warning")]


def test_a_pattern_that_matches_nothing_and_what_comes_of_it() -> None:
    assert said(replace(DEMAND, cpu_offload_params=("experts.*",))) == [
        ("FIT003", "error", "`experts.*` matches no parameter: the engine silently offloads nothing for it"),
        ("FIT004", "error", "286.44 GiB of weights remain on a GPU with 249.81 GiB"),
    ]


def test_host_memory() -> None:
    assert said(replace(DEMAND, cpu_offload_gb=95))[0][:2] == ("FIT005", "warning")
    needed = "the launch needs 744.0 GiB of Grace memory, but 466.0 GiB are available (assumed): "
    assert said(replace(DEMAND, cpu_offload_gb=300)) == [("FIT005", "error", f"{needed}lower cpu_offload_gb")]


@pytest.mark.parametrize(
    ("offload", "grace", "change"),
    [
        (300, STATION, "466.0 GiB are available (assumed): lower cpu_offload_gb from 300 to 94"),
        (60, GraceMemory(300, "MemAvailable"), "(MemAvailable): stop programs that hold memory, because no smaller"),
        (60, replace(STATION, available_gib=300), "(assumed): stop programs that hold memory, because no smaller"),
    ],
)
def test_what_to_change_for_lack_of_grace_memory(offload: float, grace: GraceMemory, change: str) -> None:
    found = fit_result(FLASH, replace(DEMAND, cpu_offload_gb=offload), grace=grace)
    sentence = host_sentence(with_nearest_settings(FLASH, found))
    assert sentence.startswith("the launch needs ")
    assert change in sentence


@pytest.mark.parametrize(
    ("text", "path", "values"),
    [
        ("engine.options.a=50..53", "engine.options.a", ("50", "51", "52", "53")),
        ("a=0..10:4", "a", ("0", "4", "8")),
        ("a=0.94..0.97:0.01", "a", ("0.94", "0.95", "0.96", "0.97")),
        ('x["a=b"].c=7..7', 'x["a=b"].c', ("7",)),
        ("a=-1..0", "a", ("-1", "0")),
    ],
)
def test_ranges(text: str, path: str, values: tuple[str, ...]) -> None:
    assert parse_sweep(text) == Sweep(path, values)


def test_one_assignment_a_value() -> None:
    assert list(parse_sweep("a.b=1..2").assignments()) == ["a.b=1", "a.b=2"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a=1", "not PATH=a..b[:step]"),
        ("1..2", "not PATH=a..b[:step]"),
        ("a=1..x", "not PATH=a..b[:step]"),
        ("a=0.90..0.97", "a range of fractions requires a step"),
        ("a=2..1", "the step must be positive, and b at least a"),
        ("a=1..2:0", "the step must be positive, and b at least a"),
        ("a=1..9999999999", "9999999999 steps; the limit is 1000"),
    ],
)
def test_what_is_no_range(text: str, reason: str) -> None:
    with pytest.raises(InvalidSweepError) as caught:
        parse_sweep(text)
    assert (caught.value.message, caught.value.exit_code) == (f"--sweep {text}: {reason}", 2)
