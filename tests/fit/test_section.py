from dataclasses import replace
from pathlib import Path

import pytest

from gb300serve.fit.checkpoint import (
    GIB,
    Checkpoint,
    Constant,
    Parameter,
    Tensor,
    checkpoint_from_tensors,
    known_checkpoints,
)
from gb300serve.fit.request import MemoryRequest
from gb300serve.fit.result import fit_result
from gb300serve.fit.section import (
    measured_sizes,
    missing_sizes,
    other_sizes,
    recipe_problems,
    with_memory_section,
    with_sizes,
)
from gb300serve.recipe.catalog import Catalog, RecipeFile
from gb300serve.recipe.load import RecipeLoader
from gb300serve.recipe.model import HostTableSection, KvCacheSection, MemorySection, ParameterSection
from tests.support.recipes import alone, write

FLASH = known_checkpoints()[0]
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
    found = with_memory_section(None, NEW, "acme/big")
    assert found is not None
    assert [one.name for one in found.parameters[:3]] == [
        "embed.weight", "layers.0.mlp.experts.w13_weight", "layers.0.mlp.experts.w2_weight",
    ]  # fmt: skip
    assert len(found.parameters) == 61
    demand = MemoryRequest(cpu_offload_gb=70, cpu_offload_params=("experts.w13_weight",), gpu_memory_utilization=0.95)
    plan = fit_result(found, demand).plan
    assert (plan.host.offloaded_gib, plan.hbm.weights_gib, plan.needed_gib) == (72.0, 228.0, 8.0)
    # 0.95 x 249.8136 + 72 - 306 leaves 3.32 GiB of the 8 that one request needs.
    assert (plan.verdict, plan.basis, round(plan.hbm.kv_cache_gib or 0, 2)) == ("refused", "computed", 3.32)
    assert plan.boots == ("the recipe: a boot of 2026-10-01",)


def test_what_is_said_goes_before_what_is_known() -> None:
    tables = MemorySection(host_tables=[HostTableSection(rows=1024, row_bytes=1024)])
    found = with_memory_section(FLASH, tables, FLASH.repo)
    assert found is not None
    assert (found.bytes - found.weights_bytes, found.parameters, found.boots) == (2**20, FLASH.parameters, FLASH.boots)
    assert found.weights_bytes == FLASH.weights_bytes
    stated = with_memory_section(FLASH, MemorySection(overhead_gib=298.74), FLASH.repo)
    assert stated == replace(FLASH, overhead=Constant(298.74, "computed", ("the recipe: no basis given",))) or stated
    assert stated is not None
    assert stated.overhead == Constant(298.74, "computed", ("the recipe: no basis given",))


def test_too_little_is_said_by_name() -> None:
    assert with_memory_section(FLASH, None, "") is FLASH
    assert with_memory_section(None, None, "") is None
    assert with_memory_section(None, MemorySection(weights_gib=10), "") is None
    assert missing_sizes(None) == ("weights_gib", "kv_cache", "max_model_len")
    assert missing_sizes(MemorySection(weights_gib=10)) == ("kv_cache", "max_model_len")


def test_a_parameter_of_some_layers() -> None:
    dense = ParameterSection(name="layers.{layer}.mlp.down_proj.weight", bytes=1, in_layers="0,3")
    found = with_memory_section(None, NEW.model_copy(update={"layers": 4, "parameters": [dense]}), "acme/big")
    assert found is not None
    assert [one.name for one in found.parameters] == [f"layers.{n}.mlp.down_proj.weight" for n in (0, 3)]


SIZES = "weights_gib: 240, kv_cache: {bytes_per_token: 4096}, max_model_len: 65536"
W13 = '{name: "layers.{layer}.w13_weight", bytes: 3221225472'
PLAIN = "model: /model"
DRAFTS = "speculative_config: {method: mtp, num_speculative_tokens: 1}"
BELOW = "overhead_gib is 239.90, less than the 240.00 GiB of weights, which it includes"


def problems(directory: Path, memory: str, options: str = PLAIN, repo: str = "acme/big") -> list[list[object]]:
    """Code, severity, line, path and message of each finding."""
    text = (
        f"model: {{repo: {repo}, revision: abc, path: /models/big, mount: /model}}\n"
        f"engine: {{name: vllm, version: 0.33.0, options: {{{options}}}}}\nmemory: {{{memory}}}\n"
    )
    path = write(directory, {"v1": alone(text)}) / "bench" / "v1.yaml"
    loaded = RecipeLoader(Catalog(())).load_file(RecipeFile(path, directory))
    return [[d.code, d.severity, d.line, d.path, d.message] for d in recipe_problems(loaded)]


@pytest.mark.parametrize(
    ("memory", "options", "severity", "path", "message"),
    [
        (f"{SIZES}, overhead_gib: 20", PLAIN, "error", "overhead_gib", BELOW.replace("239.90", "20.00")),
        (f"{SIZES}, overhead_gib: 239.9", DRAFTS, "error", "overhead_gib", BELOW),
        (
            f"{SIZES}, overhead_gib: 239.9", PLAIN, "warning", "overhead_gib",
            f"{BELOW}: possible only if the checkpoint contains a draft model that this launch does not load",
        ),
        (f"{SIZES}, overhead_gib: 239.9", "quantization: fp8", "warning", "overhead_gib", BELOW),
        (
            f"{SIZES}, overhead_gib: 241, graphs_gib: {{value: 1.5, basis: a log}}", DRAFTS, "error", "overhead_gib",
            "overhead_gib is 241.00, less than the 240.00 GiB of weights and 1.50 GiB of CUDA graphs, which it "
            "includes",
        ),
        (
            f"{SIZES}, layers: 81, parameters: [{W13}}}]", PLAIN, "error", "parameters",
            "the parameters add up to 243.00 GiB, more than the 240.00 GiB of weights",
        ),
        (
            f"{SIZES}, residency: {{hbm_expert_gib: 200, grace_expert_gib: 41, basis: a hook}}", PLAIN,
            "error", "residency", "the experts add up to 241.00 GiB, more than the 240.00 GiB of weights",
        ),
        (
            "host_tables: [{rows: 9, row_bytes: 8, scale_bytes: 8}]", PLAIN, "error",
            "host_tables.0.scale_bytes", "scale_bytes is 8, but it is a part of the 8 bytes of a row",
        ),
        (
            f"layers: 4, parameters: [{W13}, in_layers: 2-4}}]", PLAIN, "error", "parameters.0.in_layers",
            "in_layers names layer 4, but the layers are 0 to 3",
        ),
    ],
)  # fmt: skip
def test_impossible_figures(tmp_path: Path, memory: str, options: str, severity: str, path: str, message: str) -> None:
    found = [one for one in problems(tmp_path, memory, options) if one[0] == "FIT013"]
    assert [[*one[1:2], *one[3:]] for one in found] == [[severity, f"memory.{path}", message]]
    assert all(one[2] for one in found)


@pytest.mark.parametrize(
    ("memory", "options"),
    [
        (f"{SIZES}, overhead_gib: 240.5, layers: 80, parameters: [{W13}}}]", DRAFTS),
        (f"{SIZES}, overhead_gib: 240.5, graphs_gib: {{value: 1.5, basis: a log}}", "enforce_eager: true"),
        ("overhead_gib: 20", PLAIN),
    ],
)
def test_possible_figures(tmp_path: Path, memory: str, options: str) -> None:
    assert not [one for one in problems(tmp_path, memory, options) if one[0] == "FIT013"]


def test_the_weights_of_a_known_checkpoint(tmp_path: Path) -> None:
    found = problems(tmp_path, "overhead_gib: 250", DRAFTS, FLASH.repo)
    assert "less than the 286.44 GiB of weights" in str(found)
    assert [one[1] for one in problems(tmp_path, "overhead_gib: -1", DRAFTS)] == ["error"]


DIMENSIONS = {
    "max_position_embeddings": 4096, "num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 512,
}  # fmt: skip


def measured(tensors: dict[str, int]) -> Checkpoint:
    found = [Tensor(name, (size,), size) for name, size in tensors.items()]
    return checkpoint_from_tensors("acme/big", DIMENSIONS, found)


def test_measured_sizes_state_the_same_checkpoint() -> None:
    dense = {f"model.layers.{n}.mlp.gate_proj.weight": 7 * GIB for n in (0, 1, 3)}
    found = measured(
        {f"model.layers.{n}.self_attn.q_proj.weight": (5 + n // 3) * GIB for n in range(4)} | dense | {"embed.w": GIB}
    )
    sizes = measured_sizes(found, with_cache=True)
    assert [(one["name"][21:], one.get("in_layers")) for one in sizes["parameters"]] == [
        ("self_attn.qkv_proj.weight", "0-2"), ("self_attn.qkv_proj.weight", "3"), ("mlp.gate_up_proj.weight", "0-1,3"),
    ]  # fmt: skip
    again = with_memory_section(None, with_sizes(None, sizes), found.repo)
    assert again is not None
    assert replace(again, architecture=found.architecture).parameters == found.parameters
    assert (again.bytes, again.kv_cache.bytes_per_token) == (found.bytes, found.kv_cache.bytes_per_token)
    assert other_sizes(with_sizes(None, sizes), sizes) == {}
    assert list(other_sizes(with_sizes(None, sizes | {"layers": 9}), sizes)) == ["layers"]


def test_parameters_in_an_order_without_a_pattern_are_listed() -> None:
    names = ("model.layers.0.b", "model.layers.0.a", "model.layers.1.a", "model.layers.1.b")
    found = replace(measured({}), parameters=tuple(Parameter(name, GIB) for name in names))
    sizes = measured_sizes(found, with_cache=False)
    assert ([one["name"] for one in sizes["parameters"]], "layers" in sizes) == (list(names), False)


def test_the_boots_of_other_weights_do_not_count() -> None:
    other = with_memory_section(FLASH, MemorySection(weights_gib=290), FLASH.repo)
    same = with_memory_section(FLASH, MemorySection(weights_gib=round(FLASH.weights_bytes / GIB, 4)), FLASH.repo)
    assert other is not None
    assert same is not None
    assert (other.boots, same.boots) == ((), FLASH.boots)
