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
            "moe_backend and kernel_config.moe_backend are mutually exclusive",
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
            "cudagraph_capture_sizes has no effect with enforce_eager",
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
            "warning",
            "kv_cache_memory_bytes sets the size of the KV cache, gpu_memory_utilization does not",
            "keep one of them",
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
        said=Said("error", "4 ranks, but only 1 GPU", "write 1", 34, 5, "engine.options.tensor_parallel_size"),
        good={
            "    port: 8000\n": "    tensor_parallel_size: 4\n    port: 8000\n",
            "{name: GB300}": "{uuid: [GPU-a, GPU-b, GPU-c, GPU-d]}",
        },
    ),
    Case(
        "ARG001",
        "other",
        bad={"  options:\n": "  launcher: [vllm, serve]\n  options:\n"},
        said=Said(
            "error", "`vllm` follows the entrypoint `vllm serve`", "remove engine.launcher", 27, 14, "engine.launcher.0"
        ),
        good={"vllm/vllm-openai": "acme/engine", "  options:\n": "  launcher: [vllm, serve]\n  options:\n"},
    ),
    Case(
        "ARG002",
        "sglang",
        bad={"  launcher: [python3, -m, sglang.launch_server]\n": ""},
        said=Said(
            "error",
            "this image starts no engine by itself",
            "add `launcher: [python3, -m, sglang.launch_server]`",
            21,
            9,
            "engine.name",
        ),
        good={"lmsysorg/sglang": "acme/sglang", "  launcher: [python3, -m, sglang.launch_server]\n": ""},
    ),
    Case(
        "ARG003",
        "other",
        bad={
            "    port: 8000\n": (
                '    port: 8000\n  extra_args: [--max-num-seqs, "8"]\nlint: {ignore: {ARG004: on purpose}}\n'
            )
        },
        said=Said(
            "warning",
            "`--max-num-seqs` repeats an option: the engine uses the last value",
            "remove it here",
            35,
            16,
            "engine.extra_args.0",
        ),
        good={
            "    port: 8000\n": (
                '    port: 8000\n  extra_args: [--new-flag, "8"]\nlint: {ignore: {ARG004: a new flag}}\n'
            )
        },
    ),
    Case(
        "ARG004",
        "other",
        bad={"    port: 8000\n": '    port: 8000\n  extra_args: [--quince-mode, "3"]\n'},
        said=Said("note", "`--quince-mode` is not checked", None, 35, 16, "engine.extra_args.0"),
        good={},
    ),
    Case(
        "ARG005",
        "other",
        bad={
            "    port: 8000\n": (
                "    port: 8000\n  extra_args: [--kv-cache-mem, 8G]\nlint: {ignore: {ARG004: on purpose}}\n"
            )
        },
        said=Said(
            "warning",
            "`--kv-cache-mem` is short for --kv-cache-memory-bytes",
            "write `kv_cache_memory_bytes:` in engine.options",
            35,
            16,
            "engine.extra_args.0",
        ),
        good={},
    ),
    Case(
        "ARG006",
        "other",
        bad={
            "    port: 8000\n": (
                "    speculative_config: {method: ngram, num_speculative_tokens: 1}\n"
                "    port: 8000\n"
                '  extra_args: [--speculative-config.num_speculative_tokens, "2"]\n'
            )
        },
        said=Said(
            "error",
            ("`--speculative-config.num_speculative_tokens` replaces all of engine.options.speculative_config"),
            "write `num_speculative_tokens:` inside speculative_config",
            36,
            16,
            "engine.extra_args.0",
        ),
        good={},
    ),
    Case(
        "ARG007",
        "other",
        bad={"    port: 8000\n": '    port: 8000\n  extra_args: ["--seed 7"]\n'},
        said=Said(
            "error",
            "`--seed \u2026` is one argument for the engine",
            'write [--seed, "7"]',
            35,
            16,
            "engine.extra_args.0",
        ),
        good={},
    ),
    Case(
        "ARG008",
        "other",
        bad={
            "    port: 8000\n": (
                '    port: 8000\n  extra_args: [--quince-config, "{mode:3}"]\nlint: {ignore: {ARG004: a new flag}}\n'
            )
        },
        said=Said(
            "error",
            "the argument looks like JSON but is not valid JSON",
            "write it as a mapping in engine.options",
            35,
            33,
            "engine.extra_args.1",
        ),
        good={
            "    port: 8000\n": (
                "    port: 8000\n"
                "  extra_args: [--quince-config, '{\"mode\":3}']\n"
                "lint: {ignore: {ARG004: a new flag}}\n"
            )
        },
    ),
    Case(
        "ARG009",
        "other",
        bad={"    port: 8000\n": "    port: 8000\n    allowed_media_domains: [a.example]\n  extra_args: [b.example]\n"},
        said=Said(
            "error",
            "allowed_media_domains would also take `b.example`",
            "move it up",
            35,
            5,
            "engine.options.allowed_media_domains",
        ),
        good={"    port: 8000\n": "    allowed_media_domains: [a.example]\n    port: 8000\n"},
    ),
    Case(
        "ARG010",
        "other",
        bad={
            "    port: 8000\n": (
                "    port: 8000\n"
                '  extra_args: [--enable-prefix-caching, "true"]\n'
                "lint: {ignore: {ARG004: on purpose}}\n"
            )
        },
        said=Said(
            "error",
            "`--enable-prefix-caching` takes no value",
            "write `enable_prefix_caching: true` in engine.options",
            35,
            16,
            "engine.extra_args.0",
        ),
        good={"    port: 8000\n": "    enable_prefix_caching: true\n    port: 8000\n"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)
