from dataclasses import asdict, replace

from gb300serve.fit.answer import answer
from gb300serve.fit.catalog import checkpoints
from gb300serve.fit.checkpoint import GIB, Constant
from gb300serve.fit.demand import Demand
from gb300serve.fit.sizes import missing, sized
from gb300serve.recipe.model import HostTableSection, KvCacheSection, MemorySection, ParameterSection

FLASH = checkpoints()[0]
NEW = MemorySection(
    weights_gib=300,
    layers=30,
    parameters=[
        ParameterSection(name="embed.weight", bytes=GIB),
        ParameterSection(name="layers.{layer}.mlp.experts.w13_weight", bytes=4 * GIB),
        ParameterSection(name="layers.{layer}.mlp.experts.w2_weight", bytes=2 * GIB),
    ],
    kv_cache=KvCacheSection(bytes_per_token=65536),
    max_model_len=131072,
    overhead_gib=306,
    basis="a boot of 2026-10-01",
)


def test_a_new_model_needs_no_code() -> None:
    found = sized(None, NEW, "acme/big")
    assert found is not None
    assert [one.name for one in found.parameters[:3]] == [
        "embed.weight", "layers.0.mlp.experts.w13_weight", "layers.0.mlp.experts.w2_weight",
    ]  # fmt: skip
    assert len(found.parameters) == 61
    demand = Demand(cpu_offload_gb=70, cpu_offload_params=("experts.w13_weight",), gpu_memory_utilization=0.95)
    plan = answer(found, demand).plan
    assert (plan.host.offloaded_gib, plan.hbm.weights_gib, plan.needed_gib) == (72.0, 228.0, 8.0)
    # 0.95 x 249.8136 + 72 - 306 leaves 3.32 GiB of the 8 that one request needs.
    assert (plan.verdict, plan.basis, round(plan.hbm.kv_cache_gib or 0, 2)) == ("refused", "computed", 3.32)
    assert plan.boots == ("the recipe: a boot of 2026-10-01",)


def test_what_is_said_goes_before_what_is_known() -> None:
    tables = MemorySection(host_tables=[HostTableSection(rows=1024, row_bytes=1024)])
    found = sized(FLASH, tables, FLASH.repo)
    assert found is not None
    assert (found.bytes - found.weights_bytes, found.parameters, found.boots) == (2**20, FLASH.parameters, FLASH.boots)
    assert found.weights_bytes == FLASH.weights_bytes
    stated = sized(FLASH, MemorySection(overhead_gib=298.74), FLASH.repo)
    assert stated is not None
    assert stated.overhead == Constant(298.74, "computed", ("the recipe: no basis given",))
    assert asdict(replace(stated, overhead=FLASH.overhead)) == asdict(FLASH)


def test_too_little_is_said_by_name() -> None:
    assert sized(FLASH, None, "") is FLASH
    assert sized(None, None, "") is None
    assert sized(None, MemorySection(weights_gib=10), "") is None
    assert missing(None) == ("weights_gib", "kv_cache", "max_model_len")
    assert missing(MemorySection(weights_gib=10)) == ("kv_cache", "max_model_len")
