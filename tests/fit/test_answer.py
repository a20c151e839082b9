from dataclasses import replace

from gb300serve.fit.checkpoint import checkpoints
from gb300serve.fit.model import Grace
from gb300serve.fit.request import demand_of
from gb300serve.fit.result import advised, answer

FLASH = checkpoints()[0]
V14 = next(boot for boot in FLASH.boots if boot.name == "v14")
DEMAND = demand_of(V14.settings, V14.engine_version)


def test_measured_and_computed_stand_side_by_side() -> None:
    found = answer(FLASH, DEMAND)
    assert (found.verdict, found.plan.basis, found.computed.basis) == ("fits", "measured", "computed")
    assert found.measured_gib == 4.87
    assert abs((found.computed.hbm.kv_cache_gib or 0) - 4.88) < 0.03
    assert round(found.margin_gib or 0, 2) == 2.67
    assert advised(FLASH, found) is found


def test_what_was_changed_is_computed() -> None:
    found = answer(FLASH, DEMAND, changed=True)
    assert (found.plan.basis, found.measured_gib, found.plan) == ("computed", None, found.computed)


def test_the_worse_memory_decides() -> None:
    short = answer(FLASH, DEMAND, grace=Grace(380.0, "MemAvailable"))
    assert (short.verdict, short.plan.verdict, short.host_verdict) == ("short", "fits", "short")
    refused = advised(FLASH, answer(FLASH, replace(DEMAND, cpu_offload_gb=55)))
    assert (refused.verdict, refused.host_verdict, len(refused.nearest)) == ("refused", "fits", 2)
    unknown = answer(replace(FLASH, boots=()), DEMAND, grace=Grace(380.0, "MemAvailable"))
    assert (unknown.verdict, unknown.margin_gib) == ("unknown", None)
