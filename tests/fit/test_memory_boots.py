"""Every recorded boot of DeepSeek-V4.1-Flash: predicted and logged KV cache, verdict and basis."""

from dataclasses import replace

import pytest

from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot, known_checkpoints
from gb300serve.fit.memory import MemoryPlan, memory_plan, request_of_boot
from gb300serve.fit.request import SpeculationRequest

FLASH = known_checkpoints()[0]
BOOTS = {boot.name: boot for boot in FLASH.boots}


def without(*names: str) -> Checkpoint:
    return replace(FLASH, boots=tuple(boot for boot in FLASH.boots if boot.name not in names))


def cache(plan: MemoryPlan) -> float:
    assert plan.hbm.kv_cache_gib is not None
    return plan.hbm.kv_cache_gib


@pytest.mark.parametrize(
    ("name", "actual", "tolerance", "basis"),
    [
        ("v4", -6.96, 0.05, "assumed"),
        ("v5", 12.03, 0.05, "assumed"),
        ("131K with DSpark", 15.56, 0.05, "assumed"),
        ("1M at utilisation 0.94", -2.61, 0.05, "computed"),
        ("v11", 10.05, 0.05, "computed"),
        ("v12", 4.89, 0.05, "computed"),
        ("v13", 4.87, 0.05, "computed"),
        ("v14", 4.87, 0.05, "computed"),
        ("offload 55", 0.65, 0.05, "computed"),
        ("v15", 4.75, 0.05, "computed"),
        ("v16", 2.91, 0.10, "computed"),
        ("v17", 3.75, 0.05, "computed"),
        ("v18", 5.26, 0.05, "computed"),
        ("v21", 5.26, 0.05, "computed"),
        ("v18 with a tier of k=3", 5.06, 0.05, "computed"),
        ("v18 with asynchronous scheduling", 5.26, 0.05, "computed"),
        ("v12 with k=1", 6.15, 0.05, "computed"),
        ("v11 with k=3", 10.64, 0.05, "computed"),
        ("v11 without drafting", 19.96, 0.05, "computed"),
        ("v12 with adaptive verification", -0.69, 0.05, "computed"),
    ],
)
def test_a_boot_is_computed(name: str, actual: float, tolerance: float, basis: str) -> None:
    plan = memory_plan(FLASH, request_of_boot(BOOTS[name]), look_up=False)
    assert cache(plan) == pytest.approx(actual, abs=tolerance)
    assert plan.basis == basis
    assert (plan.verdict == "fits") == BOOTS[name].booted


@pytest.mark.parametrize("boot", FLASH.boots, ids=lambda boot: boot.name)
def test_every_verdict_is_what_happened(boot: MeasuredBoot) -> None:
    for look_up in (True, False):
        plan = memory_plan(FLASH, request_of_boot(boot), look_up=look_up)
        assert (plan.verdict in ("fits", "short")) == boot.booted
    measured = boot.figures.get("kv_cache_gib") is not None and not boot.assumed
    assert (memory_plan(FLASH, request_of_boot(boot)).basis == "measured") == measured


@pytest.mark.parametrize(
    ("name", "others", "actual", "error"),
    [
        # Left out with every boot of its shape: what follows from graphs and drafts alone, and says so.
        ("v16", (), 2.91, 0.10),
        ("v12 with adaptive verification", (), -0.69, 0.05),
        ("v12 with k=1", ("v11 with k=3",), 6.15, 0.10),
        ("v11 with k=3", ("v12 with k=1",), 10.64, 0.05),
    ],
)
def test_another_shape_is_assumed(name: str, others: tuple[str, ...], actual: float, error: float) -> None:
    left_out = replace(
        BOOTS[name], figures={key: value for key, value in BOOTS[name].figures.items() if key == "graphs_gib"}
    )
    known = replace(without(name, *others), boots=(*without(name, *others).boots, left_out))
    plan = memory_plan(known, request_of_boot(BOOTS[name]), look_up=False)
    assert plan.basis == "assumed"
    assert cache(plan) == pytest.approx(actual, abs=error)


def test_capture_sizes_that_no_boot_had_are_estimated_by_their_number() -> None:
    request = replace(request_of_boot(BOOTS["v18"]), capture_sizes=(1, 2, 4, 8))
    plan = memory_plan(FLASH, request)
    assert plan.graphs is not None
    assert (round(plan.graphs.gib, 3), plan.graphs.basis, plan.basis) == (0.348, "assumed", "assumed")
    listed = memory_plan(FLASH, request_of_boot(BOOTS["v17b"]))
    assert listed.graphs is not None
    assert (listed.graphs.gib, listed.basis, round(cache(listed), 2)) == (0.61, "assumed", 6.26)


def test_more_slots_without_a_list_cost_graphs() -> None:
    plan = memory_plan(FLASH, replace(request_of_boot(BOOTS["v14"]), max_num_seqs=24))
    assert (plan.basis, round(cache(plan), 2)) == ("assumed", 4.07)
    assert plan.constant is not None
    assert "CUDA graphs 2.33 GiB (v17) instead of 1.5" in plan.constant.adjustment


@pytest.mark.parametrize("offload", [48, 54, 60, 70])
def test_the_hook_fixes_the_cache_whatever_is_offloaded(offload: int) -> None:
    plan = memory_plan(FLASH, replace(request_of_boot(BOOTS["v18"]), cpu_offload_gb=float(offload)), look_up=False)
    assert (plan.verdict, round(cache(plan), 1), plan.hook_starts) == ("fits", 5.3, True)


def test_a_hook_needs_free_hbm_before_its_first_layer() -> None:
    plan = memory_plan(FLASH, replace(request_of_boot(BOOTS["v18"]), cpu_offload_gb=44.0))
    assert (plan.verdict, plan.hook_starts, plan.weights_fit) == ("refused", False, True)


@pytest.mark.parametrize(("name", "tokens"), [("v19", 3_179_961), ("v20", 2_550_264)])
def test_where_only_tokens_are_on_record_the_gib_are_assumed(name: str, tokens: int) -> None:
    plan = memory_plan(FLASH, request_of_boot(BOOTS[name]))
    assert (plan.verdict, plan.basis, plan.kv_cache_tokens) == ("fits", "assumed", tokens)


def test_adaptive_verification_needs_more_offload() -> None:
    request = replace(request_of_boot(BOOTS["v14"]), speculation=SpeculationRequest("dspark", 5, adaptive=True))
    plan = memory_plan(FLASH, request)
    assert (plan.verdict, plan.basis) == ("refused", "assumed")
    assert plan.graphs is not None
    assert plan.graphs.gib == 7.07
    assert memory_plan(FLASH, replace(request, cpu_offload_gb=66.0)).verdict == "fits"
