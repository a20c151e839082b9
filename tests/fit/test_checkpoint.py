import pytest

from gb300serve.fit.checkpoint import (
    GIB,
    HostTable,
    Parameter,
    Tensor,
    checkpoint_at_path,
    checkpoint_from_tensors,
    engine_parameter_name,
    find_checkpoint,
    known_checkpoints,
)


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
