from dataclasses import replace

import pytest

from gb300serve.fit.checkpoint import known_checkpoints
from gb300serve.fit.hardware import (
    GB300,
    H200,
    STATION,
    GraceMemory,
    HostPlan,
    gpu_named,
    gpu_with_total,
    host_plan,
    host_verdict,
    is_close_to_abort,
)
from gb300serve.fit.memory import memory_plan, request_of_boot

FLASH = known_checkpoints()[0]
BOOTS = {boot.name: boot for boot in FLASH.boots}


def host(resident: float, needed: float | None = None) -> HostPlan:
    return HostPlan(60.0, 61.0, 188.0, 250.0, resident, resident, "computed", needed, 3.0, 10.0)


@pytest.mark.parametrize(
    ("resident", "available", "verdict"),
    [
        (446.0, 466.0, "fits"),
        (446.1, 466.0, "short"),
        (466.0, 466.0, "short"),
        (466.1, 466.0, "refused"),
    ],
)
def test_without_a_hook_some_memory_should_stay_free(resident: float, available: float, verdict: str) -> None:
    assert host_verdict(host(resident), GraceMemory(available, "MemAvailable")) == verdict
    assert not is_close_to_abort(host(resident), GraceMemory(available, "MemAvailable"))


@pytest.mark.parametrize(
    ("available", "verdict", "close"),
    [(463.7, "refused", False), (463.8, "fits", True), (466.7, "fits", True), (466.8, "fits", False)],
)
def test_a_hook_states_what_it_needs(available: float, verdict: str, close: bool) -> None:
    plan, grace = host(443.75, 463.75), GraceMemory(available, "MemAvailable")
    assert (host_verdict(plan, grace), is_close_to_abort(plan, grace)) == (verdict, close)
    assert plan.left_gib(available) == pytest.approx(available - 453.75)


def test_the_default_says_that_it_is_assumed() -> None:
    assert (STATION.available_gib, STATION.basis.partition(":")[0]) == (466.0, "assumed")


@pytest.mark.parametrize(
    ("boot", "available", "logged", "tolerance"),
    [
        ("v16", 463.8, 12.21, 3.0),
        ("v18", 466.1, 12.61, 3.0),
        ("v21", 468.3, 12.47, 3.0),
        ("v19 on nightly d05da62e", 465.0, 19.28, 3.0),
    ],
)
def test_what_a_hook_leaves_as_boots_logged_it(boot: str, available: float, logged: float, tolerance: float) -> None:
    plan = memory_plan(FLASH, request_of_boot(BOOTS[boot])).host
    assert host_verdict(plan, GraceMemory(available, "MemAvailable")) == "fits"
    assert plan.left_gib(available) == pytest.approx(logged, abs=tolerance)


def test_boots_that_aborted_are_refused() -> None:
    v21, nightly = request_of_boot(BOOTS["v21"]), request_of_boot(BOOTS["v19 with the nightly's KV format"])
    assert host_verdict(memory_plan(FLASH, v21).host, GraceMemory(460.2, "MemAvailable")) == "refused"
    at_60 = memory_plan(FLASH, replace(nightly, cpu_offload_gb=60.0)).host
    assert host_verdict(at_60, GraceMemory(465.3, "MemAvailable")) == "refused"


def test_a_hook_holds_the_originals_until_it_is_done() -> None:
    plan = memory_plan(FLASH, request_of_boot(BOOTS["v18"])).host
    # Engram 2 x (128 + 4), 10 x 8 + 9 x 4 of offload, 63.75 of the hook; 10 for the engine and 10 that stay free.
    assert (plan.resident_gib, plan.peak_gib, plan.needed_gib) == (327.75, 443.75, 463.75)
    needed = [memory_plan(FLASH, request_of_boot(BOOTS[name])).host.needed_gib for name in ("v19", "v20")]
    assert needed == [455.75, 455.75]


@pytest.mark.parametrize(
    ("variable", "value", "resident"),
    [
        ("VLLM_WEIGHT_OFFLOADING_DISABLE_PIN_MEMORY", "1", 264 + 73.83),
        ("PYTORCH_CUDA_ALLOC_CONF", "pinned_max_cached_size_mb:1024", 188.83 + 73.83),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 404.0),
    ],
)
def test_what_is_not_rounded(variable: str, value: str, resident: float) -> None:
    request = replace(request_of_boot(BOOTS["v11"]), others=((f"container.env.{variable}", value),))
    plan = memory_plan(FLASH, request)
    assert host_plan(FLASH, request, plan.offload).resident_gib == pytest.approx(resident, abs=0.01)


def test_gpus_by_name_and_by_total() -> None:
    assert (gpu_named("NVIDIA GB300"), gpu_named("h200"), gpu_named("GB10")) == (GB300, H200, None)
    assert gpu_with_total(139.8) == H200
    other = gpu_with_total(95.0, "RTX", "from the site file")
    assert (other.name, other.total_gib, other.visible_gib) == ("RTX", 95.0, None)
