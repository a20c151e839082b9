from dataclasses import replace

import pytest

from gb300serve.fit.checkpoint import (
    GIB,
    Constant,
    HostTable,
    Parameter,
    Tensor,
    checkpoint_at_path,
    checkpoint_from_tensors,
    engine_parameter_name,
    find_checkpoint,
    known_checkpoints,
    missing_sizes,
    with_memory_section,
)
from gb300serve.fit.request import MemoryRequest
from gb300serve.fit.result import fit_result
from gb300serve.recipe.model import HostTableSection, KvCacheSection, MemorySection, ParameterSection


def test_flash_adds_up() -> None:
    flash = find_checkpoint("deepseek-ai/DeepSeek-V4.1-Flash")
    assert flash is not None
    layers = sum(parameter.bytes for parameter in flash.parameters)
    tables = [table.bytes for table in flash.host_tables]
    assert (round(layers / GIB / 40, 4), round(layers / GIB, 1)) == (6.7236, 268.9)
    assert [round(size / GIB, 2) for size in tables] == [94.42, 94.42]
    assert layers + sum(tables) < flash.bytes == 510_313_343_553
    assert flash.parameters[0].name == "model.layers.0.ffn.experts.routed_experts.w13_weight"
    assert flash.parameters[-1].name == "model.layers.39.ffn.experts.routed_experts.w2_weight_scale"


def test_every_file_is_readable_and_named_once() -> None:
    repos = [known.repo for known in known_checkpoints()]
    assert repos
    assert len(set(repos)) == len(repos)


def test_a_checkpoint_is_known_by_its_path() -> None:
    flash = find_checkpoint("deepseek-ai/deepseek-v4.1-flash")
    assert checkpoint_at_path("/models/DeepSeek-V4.1-Flash-df42c109f1defefcbfcedbe7d905718a12266e40") == flash
    assert checkpoint_at_path("/models/DeepSeek-V4.1-Flash/") == flash
    assert checkpoint_at_path("/models/GLM-5.3-Flash") is None


def test_a_hook_is_known_by_its_variable() -> None:
    flash = known_checkpoints()[0]
    assert flash.variant({"PIN_MODE": "split", "PIN_HOOK": "/w/hook.py"}) == "pin-hot-experts"
    assert flash.variant({"PIN_MODE": "split"}) is None
    assert flash.variant({"PIN_MODE": "count", "PIN_HOOK": "/w/hook.py"}) is None


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


CONFIG = {
    "architectures": ["AcmeForCausalLM"],
    "max_position_embeddings": 4096,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "hidden_size": 512,
}


def tensor(name: str, size: int, *shape: int) -> Tensor:
    return Tensor(name, shape or (size,), size)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model.layers.3.mlp.experts.17.gate_proj.weight", "model.layers.3.mlp.experts.routed_experts.w13_weight"),
        ("layers.3.mlp.experts.17.up_proj.weight_scale", "layers.3.mlp.experts.routed_experts.w13_weight_scale"),
        ("layers.0.ffn.experts.0.w2.weight", "layers.0.ffn.experts.routed_experts.w2_weight"),
        ("layers.0.ffn.experts.gate_up_proj", "layers.0.ffn.experts.routed_experts.w13_weight"),
        ("layers.0.ffn.shared_experts.w1.weight", "layers.0.ffn.shared_experts.w1.weight"),
        ("layers.0.attn.wq.weight", "layers.0.attn.wq.weight"),
        ("layers.0.self_attn.k_proj.weight", "layers.0.self_attn.qkv_proj.weight"),
        ("layers.0.mlp.up_proj.weight_scale", "layers.0.mlp.gate_up_proj.weight_scale"),
    ],
)
def test_names_as_the_engine_has_them(name: str, expected: str) -> None:
    assert engine_parameter_name(name) == expected


def test_experts_are_stacked_layer_by_layer() -> None:
    layers = (10, 2, 0)
    experts = [
        tensor(f"layers.{layer}.ffn.experts.{expert}.{part}.weight", size)
        for layer in layers
        for expert in (1, 0)
        for part, size in (("w2", 20), ("w1", 30), ("w3", 30))
    ]
    found = checkpoint_from_tensors(
        "acme/big", CONFIG, [*experts, tensor("embed.weight", 7), tensor("mtp.0.w.weight", 5)]
    )
    assert found.parameters == (
        *(
            Parameter(f"layers.{layer}.ffn.experts.routed_experts.{part}_weight", size)
            for layer in sorted(layers)
            for part, size in (("w13", 120), ("w2", 40))
        ),
    )
    assert (found.bytes, found.architecture, found.max_position_embeddings) == (3 * 160 + 12, "AcmeForCausalLM", 4096)


def test_a_layer_is_created_from_attention_to_norms() -> None:
    names = (
        "input_layernorm.weight", "mlp.experts.0.down_proj.weight", "mlp.experts.0.gate_proj.weight",
        "mlp.gate.weight", "self_attn.k_proj.weight", "self_attn.o_proj.weight", "self_attn.q_norm.weight",
    )  # fmt: skip
    found = checkpoint_from_tensors("acme/big", CONFIG, [tensor(f"model.layers.0.{name}", 1) for name in names])
    assert [one.name.removeprefix("model.layers.0.") for one in found.parameters] == [
        "self_attn.qkv_proj.weight", "self_attn.o_proj.weight", "self_attn.q_norm.weight", "mlp.gate.weight",
        "mlp.experts.routed_experts.w13_weight", "mlp.experts.routed_experts.w2_weight", "input_layernorm.weight",
    ]  # fmt: skip


def test_tables_for_the_host_are_told_by_their_rows() -> None:
    rows = 2_000_000
    found = checkpoint_from_tensors(
        "acme/big",
        CONFIG,
        [
            tensor("layers.0.engram.table.weight", rows * 256, rows, 256),
            tensor("layers.0.engram.table.scale", rows * 8, rows, 8),
            tensor("layers.0.engram.norm.weight", 512, 512),
        ],
    )
    assert found.host_tables == (HostTable(rows, 256, 264, 8),)
    assert found.weights_bytes == 512
    assert [one.name for one in found.parameters] == ["layers.0.engram.norm.weight"]


@pytest.mark.parametrize(
    ("more", "dtype", "expected"),
    [
        ({}, "auto", 2 * 2 * 2 * 64 * 2),
        ({}, "fp8_e4m3", 2 * 2 * 2 * 64),
        ({"head_dim": 128}, "auto", 2 * 2 * 2 * 128 * 2),
        ({"num_key_value_heads": None}, "auto", 2 * 2 * 8 * 64 * 2),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, "auto", 2 * 576 * 2),
    ],
)
def test_what_a_token_needs_of_the_cache(more: dict[str, int | None], dtype: str, expected: int) -> None:
    found = checkpoint_from_tensors("acme/big", {"text_config": CONFIG | more}, [], dtype)
    assert found.kv_cache.bytes_per_token == expected


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"max_position_embeddings": None}, "max_position_embeddings"),
        ({"max_position_embeddings": "many"}, "max_position_embeddings"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"num_attention_heads": True, "num_key_value_heads": 0}, "num_attention_heads"),
        ({"kv_lora_rank": 512}, "qk_rope_head_dim"),
    ],
)
def test_a_configuration_without_dimensions(more: dict[str, object], key: str) -> None:
    with pytest.raises(KeyError, match=key):
        checkpoint_from_tensors("acme/big", {**CONFIG, **more}, [])
