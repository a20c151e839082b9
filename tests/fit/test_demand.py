from gb300serve.core.values import Value
from gb300serve.fit.request import Demand, SpeculationRequest, demand_of


def test_the_engines_defaults() -> None:
    assert demand_of({}) == Demand(gpu_memory_utilization=0.92, offload_backend="auto", host_tables=True)


def test_every_option_that_counts() -> None:
    options: dict[str, Value] = {
        "cpu_offload_gb": 60,
        "cpu_offload_params": ["routed_experts.w13_weight"],
        "offload_backend": "uva",
        "engram_config": {"cpu_offload": False},
        "gpu_memory_utilization": 0.97,
        "max_model_len": 1048576,
        "max_num_seqs": 16,
        "max_num_batched_tokens": 8192,
        "kv_cache_dtype": "fp8_ds_mla",
        "kv_cache_memory_bytes": 2**30,
        "enforce_eager": True,
        "port": 30006,
        "speculative_config": {
            "method": "dspark",
            "num_speculative_tokens": 5,
            "num_speculative_tokens_per_batch_size": [[1, 4, 5], [5, 16, 1]],
        },
    }
    assert demand_of(options, "0.30.0", "pin-hot-experts") == Demand(
        engine_version="0.30.0",
        variant="pin-hot-experts",
        cpu_offload_gb=60.0,
        cpu_offload_params=("routed_experts.w13_weight",),
        offload_backend="uva",
        host_tables=False,
        gpu_memory_utilization=0.97,
        kv_cache_memory_bytes=2**30,
        kv_cache_dtype="fp8_ds_mla",
        max_model_len=1048576,
        max_num_seqs=16,
        max_num_batched_tokens=8192,
        speculation=SpeculationRequest("dspark", 5, ((1, 4, 5), (5, 16, 1))),
        enforce_eager=True,
    )


def test_the_prefetch_backend_moves_nothing_by_this_arithmetic() -> None:
    assert [Demand(cpu_offload_gb=60, offload_backend=name).offloads for name in ("auto", "uva", "prefetch")] == [
        True,
        True,
        False,
    ]
