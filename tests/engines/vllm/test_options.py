from dataclasses import replace

from gb300serve.core.values import Value
from gb300serve.engines.vllm.options import OffloadOptions, VllmOptions, view
from gb300serve.engines.vllm.schedule import SpeculationOptions, Tier
from tests.engines.samples import V14

EMPTY = VllmOptions(
    model=None,
    host=None,
    port=8000,
    max_model_len=None,
    max_num_seqs=None,
    max_num_batched_tokens=None,
    long_prefill_token_threshold=None,
    gpu_memory_utilization=0.92,
    kv_cache_memory_bytes=None,
    kv_cache_dtype=None,
    tensor_parallel_size=1,
    data_parallel_size=1,
    offload=OffloadOptions("auto", 0.0, (), 0),
    engram_cpu_offload=None,
    speculation=None,
    tool_call_parser=None,
    reasoning_parser=None,
    enable_auto_tool_choice=False,
    enforce_eager=False,
    capture_sizes=None,
    flashinfer_autotune=None,
)


def test_nothing_given() -> None:
    assert view({}) == EMPTY


def test_the_article_s_options() -> None:
    assert view(V14) == replace(
        EMPTY,
        model="/model",
        port=30006,
        max_model_len=1048576,
        max_num_seqs=16,
        max_num_batched_tokens=8192,
        long_prefill_token_threshold=6144,
        gpu_memory_utilization=0.97,
        offload=OffloadOptions("uva", 60.0, ("routed_experts.w13_weight", "routed_experts.w2_weight"), 0),
        engram_cpu_offload=True,
        speculation=SpeculationOptions("dspark", None, 5, (Tier(1, 4, 5), Tier(5, 16, 1))),
        tool_call_parser="deepseek_v41",
        reasoning_parser="deepseek_v41",
        enable_auto_tool_choice=True,
    )


def test_other_spellings() -> None:
    written: dict[str, Value] = {
        "model_tag": "/model",
        "max_model_len": "1M",
        "max_num_batched_tokens": "8k",
        "kv_cache_memory_bytes": "2G",
        "engram_config": {},
        "cpu_offload_params": "experts",
        "kernel_config": {"enable_flashinfer_autotune": False},
        "gpu_memory_utilization": "wrong",
        "max_num_seqs": "many",
    }
    assert view(written) == replace(
        EMPTY,
        model="/model",
        max_model_len=1048576,
        max_num_batched_tokens=8000,
        kv_cache_memory_bytes=2**31,
        engram_cpu_offload=True,
        offload=OffloadOptions("auto", 0.0, ("experts",), 0),
        flashinfer_autotune=False,
    )


def test_ends_of_two_spellings() -> None:
    assert view({"engram_config": {"cpu_offload": False}}).engram_cpu_offload is False
    assert view({"max_model_len": "auto"}).max_model_len == -1
    assert view({"enable_flashinfer_autotune": False}).flashinfer_autotune is False
