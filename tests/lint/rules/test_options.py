from pathlib import Path

import pytest

from tests.lint.samples import Case, Said, judge

CASES = (
    Case(
        "OPT101",
        "other",
        bad={"    port: 8000\n": "    moe_backend: triton\n    kernel_config: {moe_backend: triton}\n    port: 8000\n"},
        said=Said(
            "error",
            "moe_backend and kernel_config.moe_backend are one setting, and exclude each other",
            "keep one of them",
            34,
            5,
            "engine.options.moe_backend",
        ),
        good={"    port: 8000\n": "    moe_backend: triton\n    port: 8000\n"},
    ),
    Case(
        "OPT102",
        "other",
        bad={"    port: 8000\n": "    enforce_eager: true\n    cudagraph_capture_sizes: [1, 32]\n    port: 8000\n"},
        said=Said(
            "warning",
            "enforce_eager leaves cudagraph_capture_sizes without effect",
            "keep one of them",
            35,
            5,
            "engine.options.cudagraph_capture_sizes",
        ),
        good={"    port: 8000\n": "    cudagraph_capture_sizes: [1, 32]\n    port: 8000\n"},
    ),
    Case(
        "OPT103",
        "other",
        bad={"    port: 8000\n": "    kv_cache_memory_bytes: 8G\n    port: 8000\n"},
        said=Said(
            "note",
            "the size of the KV cache is fixed: gpu_memory_utilization does not decide it",
            None,
            33,
            5,
            "engine.options.gpu_memory_utilization",
        ),
        good={"    gpu_memory_utilization: 0.9\n": "    kv_cache_memory_bytes: 8G\n"},
    ),
    Case(
        "OPT104",
        "other",
        bad={"    port: 8000\n": "    tensor_parallel_size: 4\n    port: 8000\n"},
        said=Said("error", "4 ranks, and 1 GPU to run them", "write 1", 34, 5, "engine.options.tensor_parallel_size"),
        good={
            "    port: 8000\n": "    tensor_parallel_size: 4\n    port: 8000\n",
            "{name: GB300}": "{uuid: [GPU-a, GPU-b, GPU-c, GPU-d]}",
        },
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)
