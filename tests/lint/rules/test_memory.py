from pathlib import Path

import pytest

from tests.lint.samples import KNOWN, OTHER, Case, Said, changed, judge, lint, reported

CASES = (
    Case(
        "MEM001",
        "known",
        bad={"cpu_offload_gb: 70": "cpu_offload_gb: 48"},
        said=Said(
            "error",
            (
                "offload 48 at 0.97 leaves -7.78 GiB of KV cache, but one request of 1,048,576 "
                "tokens needs 2.20 (computed)"
            ),
            "offload more, or raise gpu_memory_utilization",
            30,
            21,
            "engine.options.cpu_offload_gb",
        ),
        good={"cpu_offload_gb: 70": "cpu_offload_gb: 62"},
    ),
    Case(
        "MEM002",
        "known",
        bad={"cpu_offload_gb: 70": "cpu_offload_gb: 60", "utilization: 0.97": "utilization: 0.9595"},
        said=Said(
            "warning",
            (
                "offload 60 at 0.9595 leaves 2.26 GiB of KV cache, but one request of 1,048,576 "
                "tokens needs 2.20 (computed)"
            ),
            "offload more, or raise gpu_memory_utilization",
            30,
            21,
            "engine.options.cpu_offload_gb",
        ),
        good={"cpu_offload_gb: 70": "cpu_offload_gb: 60"},
    ),
    Case(
        "MEM003",
        "known",
        bad={"cpu_offload_gb: 70": "cpu_offload_gb: 95"},
        said=Said(
            "warning",
            (
                "99.1 GiB of weights and 188.8 GiB of tables occupy 452 GiB of host memory, where about 466 GiB "
                "are available"
            ),
            "lower cpu_offload_gb",
            30,
            21,
            "engine.options.cpu_offload_gb",
        ),
        good={"cpu_offload_gb: 70": "cpu_offload_gb: 92"},
    ),
    Case(
        "MEM004",
        "other",
        bad={"utilization: 0.9": "utilization: 0.99"},
        said=Said(
            "warning",
            "gpu_memory_utilization 0.99 leaves too little for the driver and CUDA",
            "write at most 0.97",
            33,
            29,
            "engine.options.gpu_memory_utilization",
        ),
        good={"utilization: 0.9": "utilization: 0.97"},
    ),
    Case(
        "LEN001",
        "known",
        bad={"max_model_len: 1048576": "max_model_len: 2097152", "cpu_offload_gb: 70": "cpu_offload_gb: 90"},
        said=Said(
            "error",
            "max_model_len is 2097152, but the model supports 1048576",
            "write 1048576",
            36,
            20,
            "engine.options.max_model_len",
        ),
        good={"max_model_len: 1048576": "max_model_len: 1M"},
    ),
    Case(
        "LEN002",
        "known",
        bad={"token_threshold: 6144": "token_threshold: 8192"},
        said=Said(
            "warning",
            "long_prefill_token_threshold 8192 has no effect: max_num_batched_tokens is 8192",
            "write 6144",
            40,
            35,
            "engine.options.long_prefill_token_threshold",
        ),
        good={"token_threshold: 6144": "token_threshold: 8000"},
    ),
    Case(
        "LEN003",
        "other",
        bad={"max_num_batched_tokens: 8192": "max_num_batched_tokens: 131072\n    long_prefill_token_threshold: 98304"},
        said=Said(
            "error",
            "long_prefill_token_threshold is 98304, but max_model_len is 65536",
            "write less than max_model_len",
            33,
            35,
            "engine.options.long_prefill_token_threshold",
        ),
        good={
            "max_num_batched_tokens: 8192": "max_num_batched_tokens: 131072\n    long_prefill_token_threshold: 65536"
        },
    ),
    Case(
        "LEN004",
        "other",
        bad={"max_num_batched_tokens: 8192": "max_num_batched_tokens: 24"},
        said=Said(
            "error",
            "max_num_batched_tokens is 24, but max_num_seqs is 32",
            "write at least max_num_seqs; 8192 is common",
            32,
            29,
            "engine.options.max_num_batched_tokens",
        ),
        good={"max_num_batched_tokens: 8192": "max_num_batched_tokens: 32"},
    ),
    Case(
        "LEN005",
        "other",
        bad={"    port: 8000\n": "    enable_chunked_prefill: false\n    port: 8000\n"},
        said=Said(
            "error",
            "without chunked prefill max_num_batched_tokens 8192 must hold max_model_len 65536",
            "remove it",
            34,
            5,
            "engine.options.enable_chunked_prefill",
        ),
        good={
            "    port: 8000\n": "    enable_chunked_prefill: false\n    port: 8000\n",
            "max_num_batched_tokens: 8192": "max_num_batched_tokens: 65536",
        },
    ),
    Case(
        "LEN006",
        "other",
        bad={"title: Orchard lane": "title: Orchard lane, half a million tokens"},
        said=Said(
            "warning",
            "the title promises half a million, but the engine serves 65536 tokens",
            "correct the title, or the context length",
            4,
            8,
            "title",
        ),
        good={"title: Orchard lane": "title: Orchard lane, 64K context, 32 seats"},
    ),
    Case(
        "LEN007",
        "other",
        bad={"max_model_len: 65536": "max_model_len: 524288"},
        said=Said(
            "note",
            ("short requests wait for the whole prefill of a long one: long_prefill_token_threshold is not set"),
            "add `long_prefill_token_threshold: 6144`",
            30,
            5,
            "engine.options.max_model_len",
        ),
        good={"max_model_len: 65536": "max_model_len: 524288\n    long_prefill_token_threshold: 6144"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)


@pytest.mark.parametrize(
    ("gigabytes", "codes"), [(40, ["REC001"]), (50, ["MEM001"]), (55, ["REC001"]), (58, []), (253, ["MEM003"])]
)
def test_offloads_at_a_million_tokens(tmp_path: Path, gigabytes: int, codes: list[str]) -> None:
    found = lint(tmp_path, changed(KNOWN, {"cpu_offload_gb: 70": f"cpu_offload_gb: {gigabytes}"}))
    assert [(d.code, d.severity) for d in found] == [(code, "error") for code in codes]


def test_where_the_arithmetic_does_not_apply(tmp_path: Path) -> None:
    assert (
        lint(tmp_path, changed(KNOWN, {"cpu_offload_gb: 70": "cpu_offload_gb: 40", "{name: GB300}": "{name: H200}"}))
        == []
    )


def test_an_overhead_that_the_recipe_states_decides(tmp_path: Path) -> None:
    stated = {"title: Garden lane": "title: Garden lane\nmemory: {overhead_gib: 290, basis: measured}"}
    assert lint(tmp_path, changed(KNOWN, {"cpu_offload_gb: 70": "cpu_offload_gb: 52", **stated})) == []
    (found,) = lint(tmp_path, changed(KNOWN, {"cpu_offload_gb: 70": "cpu_offload_gb: 44", **stated}))
    assert (found.code, found.severity) == ("MEM001", "error")


def test_what_nothing_was_measured_with_is_a_warning(tmp_path: Path) -> None:
    option = {"    port: 30777\n": "    block_size: 64\n    port: 30777\n"}
    (found,) = lint(tmp_path, changed(KNOWN, {"cpu_offload_gb: 70": "cpu_offload_gb: 48", **option}))
    assert (found.code, found.severity) == ("MEM001", "warning")
    assert found.message.endswith("(assumed)")


@pytest.mark.parametrize(
    "title",
    [
        "64K",
        "64k context",
        "Quince at 65K",
        "65,536 tokens",
        "64K context in 512K batches",
        "Quince 4B, 32 seats",
        "Sixty-K",
    ],
)
def test_titles_that_hold(tmp_path: Path, title: str) -> None:
    assert lint(tmp_path, changed(OTHER, {"title: Orchard lane": f'title: "{title}"'})) == []


@pytest.mark.parametrize(
    "title", ["128K", "Quince, 256k context", "1M context", "one million tokens", "131072 tokens", "0.5M"]
)
def test_titles_that_do_not(tmp_path: Path, title: str) -> None:
    (found,) = lint(tmp_path, changed(OTHER, {"title: Orchard lane": f'title: "{title}"'}))
    assert (found.code, found.severity, found.path) == ("LEN006", "warning", "title")


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"    port: 8000\n": "    kv_cache_memory_bytes: 8G\n    num_gpu_blocks_override: 900\n    port: 8000\n",
          "    gpu_memory_utilization: 0.9\n": ""}, "engine.options.kv_cache_memory_bytes"),
        ({"    port: 8000\n": "    enable_sleep_mode: true\n    port: 8000\n",
          "    VLLM_LOGGING_LEVEL: INFO\n": "    PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True\n"},
         "container.env.PYTORCH_CUDA_ALLOC_CONF"),
        ({"Quince-9B\n  revision": "Quince-200B\n  revision",
          "    port: 8000\n": "    cpu_offload_gb: 60\n    cpu_offload_params: [w2_weight]\n    port: 8000\n",
          "    VLLM_LOGGING_LEVEL: INFO\n": '    VLLM_WEIGHT_OFFLOADING_DISABLE_UVA: "1"\n'},
         "container.env.VLLM_WEIGHT_OFFLOADING_DISABLE_UVA"),
        ({"Quince-9B\n  revision": "Quince-200B\n  revision",
          "    port: 8000\n": "    cpu_offload_gb: 60\n    cpu_offload_params: [w2_weight]\n    port: 8000\n",
          "  ipc: host\n": "  ipc: host\n  memory: 48g\n"}, "container.memory"),
    ],
)  # fmt: skip
def test_two_memory_settings_that_contradict_each_other(tmp_path: Path, changes: dict[str, str], path: str) -> None:
    assert [found[:2] for found in reported(tmp_path, "other", changes)] == [("MEM005", path)]


def test_a_memory_limit_above_the_offload_is_accepted(tmp_path: Path) -> None:
    offload = "    cpu_offload_gb: 60\n    cpu_offload_params: [w2_weight]\n    port: 8000\n"
    changes = {"Quince-9B\n  revision": "Quince-200B\n  revision", "    port: 8000\n": offload}
    assert reported(tmp_path, "other", {**changes, "  ipc: host\n": "  ipc: host\n  memory: 64g\n"}) == []


def test_sglang_ignores_the_ratio_of_a_sized_cache(tmp_path: Path) -> None:
    changes = {"    port: 30778\n": "    hicache_ratio: 2.0\n    hicache_size: 60\n    port: 30778\n"}
    assert reported(tmp_path, "sglang", changes) == [
        ("MEM005", "engine.options.hicache_ratio", "keep one of them"),
    ]


@pytest.mark.parametrize(("batch", "threshold"), [(2048, 1536), (4096, 3072), (8192, 6144), (65536, 6144)])
def test_the_proposed_threshold_is_accepted(tmp_path: Path, batch: int, threshold: int) -> None:
    long = {"max_model_len: 65536": "max_model_len: 524288", "batched_tokens: 8192": f"batched_tokens: {batch}"}
    hint = f"long_prefill_token_threshold: {threshold}"
    assert reported(tmp_path, "other", long) == [("LEN007", "engine.options.max_model_len", f"add `{hint}`")]
    assert reported(tmp_path, "other", {**long, "    port: 8000\n": f"    {hint}\n    port: 8000\n"}) == []
