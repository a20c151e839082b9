from dataclasses import replace

import pytest

from gb300serve.fit.checkpoint import GIB, known_checkpoints
from gb300serve.fit.hardware import GB300
from gb300serve.fit.memory import MemoryPlan, longest_context, measured_boots, memory_plan, needed_gib, tokens_in
from gb300serve.fit.request import MemoryRequest, SpeculationRequest

FLASH = known_checkpoints()[0]
DSPARK = SpeculationRequest("dspark", 5)
V12 = MemoryRequest(
    engine_version="0.1.dev20904+g179dd0fa9",
    cpu_offload_gb=60,
    cpu_offload_params=("routed_experts.w13_weight", "routed_experts.w2_weight"),
    offload_backend="uva",
    gpu_memory_utilization=0.97,
    max_model_len=1_048_576,
    max_num_seqs=16,
    max_num_batched_tokens=8192,
    speculation=DSPARK,
)
V14 = replace(V12, speculation=SpeculationRequest("dspark", 5, ((1, 4, 5), (5, 16, 1))))
V11 = replace(V12, cpu_offload_gb=70, gpu_memory_utilization=0.94)


def cache(plan: MemoryPlan) -> float:
    assert plan.hbm.kv_cache_gib is not None
    return plan.hbm.kv_cache_gib


@pytest.mark.parametrize(
    ("demand", "expected"), [(V12, 4.88), (V14, 4.88), (V11, 10.05), (replace(V14, cpu_offload_gb=55), 0.65)]
)
def test_the_arithmetic_gives_the_measured_cache_without_looking_it_up(demand: MemoryRequest, expected: float) -> None:
    # Every boot with the same offload is left out: F comes from the other boots of the shape.
    others = tuple(boot for boot in FLASH.boots if boot.settings["cpu_offload_gb"] != demand.cpu_offload_gb)
    plan = memory_plan(replace(FLASH, boots=others), demand)
    assert plan.basis == "computed"
    assert cache(plan) == pytest.approx(expected, abs=0.03)


def test_v14_is_measured() -> None:
    plan = memory_plan(FLASH, V14)
    assert (plan.verdict, plan.basis, plan.boots) == ("fits", "measured", ("v14",))
    assert (cache(plan), plan.kv_cache_tokens) == (4.87, 2_321_223)
    assert round(plan.concurrency_at_max_len or 0, 2) == 2.21
    assert (round(plan.hbm.usable_gib, 2), round(plan.hbm.weights_gib, 2)) == (242.32, 225.26)
    assert plan.hbm.usable_gib == pytest.approx(plan.hbm.weights_gib + (plan.hbm.overhead_gib or 0) + cache(plan))


def test_v12_reports_the_tokens_of_its_boot() -> None:
    plan = memory_plan(FLASH, V12)
    assert (cache(plan), plan.kv_cache_tokens) == (4.89, 2_326_569)
    assert round(plan.concurrency_at_max_len or 0, 2) == 2.22


def test_asking_for_57_to_61_is_one_launch() -> None:
    plans = [memory_plan(FLASH, replace(V14, cpu_offload_gb=asked)) for asked in (57, 58, 59, 60, 61)]
    assert len({(cache(plan), plan.kv_cache_tokens, plan.host.offloaded_gib, plan.basis) for plan in plans}) == 1


def test_offload_55_is_refused() -> None:
    plan = memory_plan(FLASH, replace(V14, cpu_offload_gb=55))
    assert (plan.verdict, plan.estimated_max_model_len) == ("refused", 123_264)
    assert (cache(plan), round(plan.needed_gib, 1)) == (0.65, 2.2)


def test_offload_54_at_the_longest_context_leaves_less_than_nothing() -> None:
    plan = memory_plan(FLASH, replace(V14, cpu_offload_gb=54))
    assert (plan.verdict, plan.kv_cache_tokens, plan.estimated_max_model_len) == ("refused", None, None)
    assert cache(plan) == pytest.approx(-1.45, abs=0.03)


def test_patterns_that_match_nothing_leave_weights_that_do_not_fit() -> None:
    plan = memory_plan(FLASH, replace(V14, cpu_offload_params=("experts.*",)))
    assert (plan.verdict, plan.weights_fit, plan.host.offloaded_gib) == ("refused", False, 0.0)
    assert plan.offload.unmatched == ("experts.*",)


def test_lookup_tables_on_the_gpu_do_not_fit() -> None:
    plan = memory_plan(FLASH, replace(V14, host_tables=False))
    assert (plan.weights_fit, plan.host.engram_gib) == (False, 0.0)


def test_a_shorter_context_is_assumed_on_the_line_between_two_lengths() -> None:
    short = memory_plan(FLASH, replace(V14, max_model_len=131_072))
    middle = memory_plan(FLASH, replace(V14, max_model_len=589_824))
    assert short.basis == middle.basis == "assumed"
    assert cache(short) - cache(memory_plan(FLASH, V14)) == pytest.approx(5.5, abs=0.05)
    assert cache(middle) == pytest.approx((cache(short) + 4.879) / 2, abs=0.01)


def test_without_drafter_the_slope_of_the_other_shape_is_used() -> None:
    early = replace(V14, gpu_memory_utilization=0.94, speculation=None, max_model_len=131_072)
    assert cache(memory_plan(FLASH, early)) == pytest.approx(12.03, abs=0.01)
    assert cache(memory_plan(FLASH, replace(early, cpu_offload_gb=40))) == pytest.approx(-6.96, abs=0.02)
    long = memory_plan(FLASH, replace(early, max_model_len=1_048_576))
    assert cache(long) == pytest.approx(12.03 - 4.7, abs=0.05)


def test_the_hook_has_a_constant_of_its_own() -> None:
    plan = memory_plan(FLASH, replace(V14, variant="pin-hot-experts"))
    assert (plan.basis, plan.boots, cache(plan)) == ("measured", ("v15",), 4.75)


def test_bytes_for_the_cache_override_utilisation() -> None:
    plan = memory_plan(FLASH, replace(V14, kv_cache_memory_bytes=2 * 1024**3))
    assert (plan.verdict, cache(plan), plan.basis) == ("refused", 2.0, "computed")


def test_little_to_spare_is_short() -> None:
    plan = memory_plan(FLASH, replace(V14, kv_cache_memory_bytes=int(2.25 * 1024**3)))
    assert plan.verdict == "short"


def test_auto_shortens_the_context() -> None:
    plan = memory_plan(FLASH, replace(V14, cpu_offload_gb=55, max_model_len=-1))
    assert (plan.verdict, plan.max_model_len) == ("short", 123_264)


def test_the_host_as_v11_was_accounted() -> None:
    host = memory_plan(FLASH, V11).host
    assert (host.requested_gib, round(host.offloaded_gib, 2), round(host.engram_gib, 2)) == (70, 73.83, 188.83)
    assert (round(host.least_gib, 1), host.resident_gib, host.peak_gib) == (262.7, 404.0, 404.0)


def test_nothing_measured_means_unknown() -> None:
    plan = memory_plan(replace(FLASH, boots=()), V14)
    assert (plan.verdict, plan.hbm.kv_cache_gib, plan.hbm.overhead_gib, plan.basis) == (
        "unknown",
        None,
        None,
        "assumed",
    )


def test_a_context_of_nothing_has_no_concurrency() -> None:
    plan = memory_plan(FLASH, replace(V14, max_model_len=0))
    assert (plan.max_model_len, plan.concurrency_at_max_len) == (0, None)


def test_tables_that_stay_on_the_gpu_are_counted() -> None:
    kept = memory_plan(FLASH, replace(V14, host_tables=False))
    tables = sum(table.bytes for table in FLASH.host_tables) / GIB
    assert (kept.verdict, kept.basis) == ("refused", "assumed")
    assert cache(kept) == pytest.approx(cache(memory_plan(FLASH, V14, look_up=False)) - tables, abs=0.2)


@pytest.mark.parametrize("length", [1024, 131_072, 1_048_576])
@pytest.mark.parametrize("speculation", [None, DSPARK])
@pytest.mark.parametrize("host_tables", [True, False])
def test_what_stands_beside_the_weights_is_never_less_than_any_boot_showed(
    length: int, speculation: SpeculationRequest | None, host_tables: bool
) -> None:
    # v4 and v5 ran without the drafter, whose weights are in the checkpoint: 2.47 GiB less than all of them.
    demand = replace(V12, max_model_len=length, speculation=speculation, host_tables=host_tables)
    for asked in (0, 40, 60, 188):
        plan = memory_plan(FLASH, replace(demand, cpu_offload_gb=asked))
        assert plan.hbm.overhead_gib is not None
        assert plan.hbm.overhead_gib > -2.48


CACHE = known_checkpoints()[0].kv_cache


def test_both_measured_pairs_come_back() -> None:
    assert round(needed_gib(CACHE, 1_048_576), 1) == 2.2
    assert round(needed_gib(CACHE, 123_264), 2) == 0.65
    assert longest_context(CACHE, 0.65) == 123_264


def test_a_pool_is_counted_in_whole_requests() -> None:
    assert tokens_in(CACHE, 4.88, 1_048_576) == 2_325_990
    assert tokens_in(CACHE, needed_gib(CACHE, 4096), 4096) == 4096


def test_nothing_fits_below_one_block() -> None:
    assert longest_context(CACHE, 0.4435) is None
    assert longest_context(CACHE, -3.0) is None


BOOTS = {one.boot.name: one for one in measured_boots(known_checkpoints()[0], GB300.total_gib)}


def test_every_boot_of_one_shape_gives_the_same_constant() -> None:
    shape = ("v11", "v12", "v13", "v14", "offload 55", "1M at utilisation 0.94")
    constants = [BOOTS[name].constant for name in shape]
    assert max(constants) - min(constants) < 0.03
    assert round(sum(constants) / len(constants), 2) == 298.61


def test_other_shapes_have_other_constants() -> None:
    named = ("v4", "v5", "131K with DSpark", "v15")
    assert {name: round(BOOTS[name].constant, 1) for name in named} == {
        "v4": 284.0,
        "v5": 284.0,
        "131K with DSpark": 293.1,
        "v15": 299.9,
    }


def test_boots_without_a_measured_cache_teach_nothing() -> None:
    assert "v12 with three tiers" not in BOOTS
