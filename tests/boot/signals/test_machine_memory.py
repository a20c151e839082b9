import pytest

from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from tests.boot.cases import LOADING, SIZING, Case, argparse, check, engine, name
from tests.boot.logs import Log

CASES = [
    Case(
        Reason.KV_CACHE_TOO_SMALL,
        engine(
            "ValueError: To serve at least one request with the model's max seq len (262144), (3.41 GiB KV cache is"
            " needed, which is larger than the available KV cache memory (2.02 GiB). Based on the available memory, the"
            " estimated maximum model length is 155264. Try increasing `gpu_memory_utilization`.",
            Log().raw(*SIZING[:-1]),
        ),
        16,
        {"max_model_len": 262144, "needed_gib": 3.41, "available_gib": 2.02, "estimated_max_model_len": 155264},
        Phase.SIZING_KV_CACHE,
    ),
    Case(
        Reason.KV_CACHE_NEGATIVE,
        engine(
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
            Log().raw(*Log().arguments().engine().loaded().sized("-2.61").lines[:-1]),
        ),
        16,
        {"available_gib": -2.61},
        Phase.SIZING_KV_CACHE,
    ),
    Case(
        Reason.KV_DTYPE_UNSUPPORTED,
        argparse("argument --kv-cache-dtype: invalid choice: 'fp6' (choose from 'auto', 'fp8')"),
        3,
        {"argument": "--kv-cache-dtype", "value": "fp6"},
    ),
    Case(
        Reason.KV_DTYPE_UNSUPPORTED,
        engine("ValueError: nvfp4 KV cache is not supported with this attention backend"),
        8,
        {"dtype": "nvfp4"},
    ),
    Case(
        Reason.KV_DTYPE_UNSUPPORTED,
        engine(
            "ValueError: No valid attention backend found for cuda with AttentionSelectorConfig(head_size=576,"
            " kv_cache_dtype=fp8_e5m2). Reasons: {FLASH_ATTN: [kv_cache_dtype not supported]}"
        ),
        8,
        {
            "dtype": "fp8_e5m2",
            "detail": "No valid attention backend found for cuda with AttentionSelectorConfig(head_size=576,"
            " kv_cache_dtype=fp8_e5m2). Reasons: {FLASH_ATTN: [kv_cache_dtype not supported]}",
        },
    ),
    Case(
        Reason.GPU_OOM,
        engine(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of"
            " 249.81 GiB of which 301.50 MiB is free.",
            Log().raw(*LOADING),
        ),
        14,
        {"tried": "512.00 MiB", "gpu": 0, "total_gib": 249.81, "free": "301.50 MiB"},
        Phase.PROFILING,
    ),
    Case(
        Reason.GPU_MEMORY_IN_USE,
        engine(
            "ValueError: Free memory on device cuda:0 (101.5/249.81 GiB) on startup is less than desired GPU memory"
            " utilization (0.9, 224.83 GiB). Decrease GPU memory utilization or reduce GPU memory used by others."
        ),
        8,
        {
            "device": "cuda:0",
            "free_gib": 101.5,
            "total_gib": 249.81,
            "gpu_memory_utilization": 0.9,
            "desired_gib": 224.83,
        },
    ),
    Case(
        Reason.MEMORY_FREED_DURING_PROFILING,
        engine(
            "AssertionError: Error in memory profiling. Initial free memory 101.5 GiB, current free memory 180.25 GiB."
            " This happens when other processes sharing the same container release GPU memory while vLLM is profiling"
            " during initialization."
        ),
        8,
        {"initial_gib": 101.5, "current_gib": 180.25},
        Phase.PROFILING,
    ),
    Case(
        Reason.HOST_OOM_KILLED,
        [
            *LOADING,
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s):"
            " {'EngineCore': -9}",
            "[Thu Dec  3 08:05:00 2026] VLLM::EngineCor invoked oom-killer: gfp_mask=0x140cca, order=0",
            "[Thu Dec  3 08:05:00 2026] Out of memory: Killed process 812 (VLLM::EngineCor) total-vm:9kB,"
            " anon-rss:19kB, file-rss:6kB, shmem-rss:470000000kB, UID:0",
        ],
        12,
        {"pid": 812, "process": "VLLM::EngineCor", "anonymous_kib": 19, "shared_kib": 470000000},
        Phase.PROFILING,
    ),
    Case(
        Reason.KILLED,
        [
            *LOADING,
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s):"
            " {'EngineCore': -9}",
        ],
        10,
        {"process": "EngineCore", "signal": 9},
        Phase.PROFILING,
    ),
    Case(
        Reason.SHARED_MEMORY_TOO_SMALL,
        engine(
            "RuntimeError: Insufficient space in /dev/shm for shared-memory allocation: 160 MiB required, 64 MiB free."
            " Increase /dev/shm (e.g. --shm-size or --ipc=host)."
        ),
        8,
        {"path": "/dev/shm", "needed_mib": 160, "free_mib": 64},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_line_that_names_the_cause_is_found(case: Case) -> None:
    check(case)
