from pathlib import Path

import pytest

from gb300serve.core.values import Value
from gb300serve.fit.checkpoint import Parameter, known_checkpoints
from gb300serve.fit.request import (
    MemoryRequest,
    SpeculationRequest,
    is_match,
    offload,
    recipe_environment,
    request_from_options,
    rounded_up,
)
from gb300serve.recipe.model import Recipe
from tests.support.recipes import alone, load, write

FLASH = known_checkpoints()[0]
REST = """\
container:
  mounts:
    - {source: /cache, target: /root/.cache/vllm}
    - {source: /patch.py, target: /usr/lib/python3.12/sitecustomize.py}
  env: {VLLM_LOGGING_LEVEL: INFO, VLLM_USE_V2_MODEL_RUNNER: "1", PIN_MODE: split}
engine:
  name: vllm
  version: 0.33.0
  options: {model: /model}
  extra_args: [--new, "3"]
"""


def recipe(directory: Path) -> Recipe:
    found = load(write(directory, {"v1": alone(REST)}), "bench/v1").recipe
    assert found is not None
    return found


def test_patches_variables_and_raw_words(tmp_path: Path) -> None:
    engine = (("container.env.VLLM_USE_V2_MODEL_RUNNER", "1"), ("engine.extra_args", '["--new","3"]'))
    patch = ("container.mounts", "/usr/lib/python3.12/sitecustomize.py")
    assert recipe_environment(recipe(tmp_path), FLASH) == (patch, *engine)


HOOK = """\
container:
  mounts:
    - {{source: /hook, target: /w, sha256: {{pin_hot_experts_hook.py: {hash}}}}}
    - {{source: /data, target: /data}}
    {patch}
  env: {{PIN_MODE: split, PIN_HOOK: /w/pin_hot_experts_hook.py}}
engine: {{name: vllm, version: 0.33.0, options: {{model: /model}}}}
"""
KNOWN = "b5e4f4f852b9dd3b510b7acda191f30255f105aa0cfda41fa222f48bc37729f4"
PATCH = "/usr/lib/python3/dist-packages/vllm/attention.py"


@pytest.mark.parametrize(
    ("digest", "patch", "expected"),
    [
        (KNOWN, "", ()),
        (KNOWN, f"- {{source: /a.py, target: {PATCH}}}", (("container.mounts", PATCH),)),
        ("a" * 64, "", (("container.mounts", "PIN_HOOK with an unknown sha256"),)),
    ],
)
def test_files_of_a_known_hook_are_no_patches(
    tmp_path: Path, digest: str, patch: str, expected: tuple[tuple[str, str], ...]
) -> None:
    text = alone(HOOK.format(hash=digest, patch=patch))
    found = load(write(tmp_path, {"v1": text}), "bench/v1").recipe
    assert found is not None
    assert recipe_environment(found, FLASH) == expected


def test_the_engines_defaults() -> None:
    assert request_from_options({}) == MemoryRequest(
        gpu_memory_utilization=0.92, offload_backend="auto", host_tables=True
    )


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
    assert request_from_options(options, "0.30.0", "pin-hot-experts") == MemoryRequest(
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
    assert [
        MemoryRequest(cpu_offload_gb=60, offload_backend=name).offloads for name in ("auto", "uva", "prefetch")
    ] == [True, True, False]


EXPERTS = ("routed_experts.w13_weight", "routed_experts.w2_weight")


def staircase(asked: float) -> tuple[float, int]:
    moved = offload(FLASH.parameters, asked, EXPERTS)
    return round(moved.moved_gib, 2), len(moved.moved)


def test_the_measured_steps() -> None:
    assert {asked: staircase(asked) for asked in (0, 40, 54, 55, 56.95, 57, 60, 61, 61.17, 61.18, 70)} == {
        0: (0.0, 0),
        40: (42.19, 13),
        54: (54.84, 17),
        55: (56.95, 18),
        56.95: (56.95, 18),
        57: (61.17, 19),
        60: (61.17, 19),
        61: (61.17, 19),
        61.17: (61.17, 19),
        61.18: (63.28, 20),
        70: (73.83, 23),
    }


def test_all_experts_are_the_most_that_moves() -> None:
    moved = offload(FLASH.parameters, 1000, EXPERTS)
    assert (round(moved.moved_gib, 3), len(moved.moved), moved.unmatched) == (253.125, 80, ())


def test_patterns_are_whole_segments() -> None:
    name = "model.layers.7.ffn.experts.routed_experts.w13_weight"
    patterns = {
        "routed_experts.w13_weight": True,
        "routed_experts": True,
        "layers.7": True,
        "model": True,
        "w13_weight": True,
        "experts.*": False,
        "experts.w13_weight": False,
        "routed_experts.w13": False,
        "layers.": False,
        "routed_experts.w13_weight,routed_experts.w2_weight": False,
    }
    assert {pattern: is_match(pattern, name) for pattern in patterns} == patterns


def test_what_matches_nothing_moves_nothing_and_is_named() -> None:
    moved = offload(FLASH.parameters, 60, ("experts.*", "routed_experts.w2_weight", "experts.w13_weight"))
    assert moved.unmatched == ("experts.*", "experts.w13_weight")
    assert {parameter.name.rpartition(".")[2] for parameter in moved.moved} == {"w2_weight"}
    assert offload(FLASH.parameters, 60, ("experts.*",)).moved == ()


def test_the_total_is_tested_before_each_parameter() -> None:
    ladder = (Parameter("a.x", 3), Parameter("b.x", 3), Parameter("c.x", 3))
    gib = 1024**3
    assert [len(offload(ladder, asked / gib, ()).moved) for asked in (0, 1, 3, 4, 6, 7, 99)] == [0, 1, 1, 2, 2, 3, 3]


def test_rounded_up_to_powers_of_two() -> None:
    assert [rounded_up(size) for size in (1, 2, 3, 4096, 4097)] == [1, 2, 4, 4096, 8192]
