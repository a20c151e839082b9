from dataclasses import replace

from gb300serve.fit.checkpoint import checkpoints
from gb300serve.fit.model import STATION, Grace
from gb300serve.fit.request import Demand, demand_of
from gb300serve.fit.result import nearest

FLASH = checkpoints()[0]
V14 = next(boot for boot in FLASH.boots if boot.name == "v14")
DEMAND = demand_of(V14.settings, V14.engine_version)


def found(demand: Demand, grace: Grace = STATION) -> list[tuple[str, int | float, float]]:
    return [(one.option, one.value, round(one.plan.hbm.kv_cache_gib or 0, 2)) for one in nearest(FLASH, demand, grace)]


def test_offload_55_as_the_boot_told_it() -> None:
    assert found(replace(DEMAND, cpu_offload_gb=55)) == [("cpu_offload_gb", 57, 4.88), ("max_model_len", 123264, 6.23)]


def test_the_share_of_the_gpu_goes_up_to_what_ever_booted() -> None:
    ways = found(replace(DEMAND, gpu_memory_utilization=0.94))
    assert ways[:2] == [("cpu_offload_gb", 64, 3.71), ("gpu_memory_utilization", 0.96, 2.38)]
    assert ways[2][0] == "max_model_len"


def test_less_than_nothing_left_halves_the_context() -> None:
    assert found(replace(DEMAND, cpu_offload_gb=54))[-1][:2] == ("max_model_len", 524288)


def test_too_much_for_the_host_is_offloaded_less() -> None:
    assert found(replace(DEMAND, cpu_offload_gb=200))[-1][:2] == ("cpu_offload_gb", 113)
    assert found(replace(DEMAND, cpu_offload_gb=60), Grace(380.0, "MemAvailable"))[:1] == []


def test_without_matching_patterns_no_offload_helps() -> None:
    ways = found(replace(DEMAND, cpu_offload_params=("experts.*",)))
    assert "cpu_offload_gb" not in [option for option, _, _ in ways]
