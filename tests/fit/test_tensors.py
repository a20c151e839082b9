import pytest

from gb300serve.fit.checkpoint import HostTable, Parameter, Tensor, checkpoint_from, engine_name

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
    ],
)
def test_names_as_the_engine_has_them(name: str, expected: str) -> None:
    assert engine_name(name) == expected


def test_experts_are_stacked_layer_by_layer() -> None:
    layers = (10, 2, 0)
    experts = [
        tensor(f"layers.{layer}.ffn.experts.{expert}.{part}.weight", size)
        for layer in layers
        for expert in (1, 0)
        for part, size in (("w2", 20), ("w1", 30), ("w3", 30))
    ]
    found = checkpoint_from("acme/big", CONFIG, [*experts, tensor("embed.weight", 7), tensor("mtp.0.w.weight", 5)])
    assert found.parameters == (
        Parameter("embed.weight", 7),
        *(
            Parameter(f"layers.{layer}.ffn.experts.routed_experts.{part}_weight", size)
            for layer in sorted(layers)
            for part, size in (("w13", 120), ("w2", 40))
        ),
    )
    assert (found.bytes, found.architecture, found.max_position_embeddings) == (3 * 160 + 12, "AcmeForCausalLM", 4096)


def test_tables_for_the_host_are_told_by_their_rows() -> None:
    rows = 2_000_000
    found = checkpoint_from(
        "acme/big",
        CONFIG,
        [
            tensor("layers.0.engram.table.weight", rows * 256, rows, 256),
            tensor("layers.0.engram.table.scale", rows * 8, rows, 8),
            tensor("layers.0.engram.norm.weight", 512, 512),
        ],
    )
    assert found.host_tables == (HostTable(rows, 256, 264),)
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
    found = checkpoint_from("acme/big", {"text_config": CONFIG | more}, [], dtype)
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
        checkpoint_from("acme/big", {**CONFIG, **more}, [])
