#!/usr/bin/env python3
"""Write a tiny random Llama that vLLM serves: weights, tokenizer, chat template. Standard library only.

usage: make_tiny_model.py DIR

Two layers, 128 wide, a byte-level vocabulary without merges (each byte is a token), 0.8 MB in two shards, the
same bytes every time. It talks nonsense, which is all that starting, asking and ending an engine needs.
"""

import json
import random
import struct
import sys
from pathlib import Path
from typing import Any

LAYERS = 2
HIDDEN = 128
INTERMEDIATE = 256
HEADS = 4
KV_HEADS = 2
HEAD_DIM = HIDDEN // HEADS  # 32, the least that vLLM's attention for the CPU takes
CONTEXT = 4096
SPECIAL = ("<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>")
VOCABULARY = 320  # 256 bytes and the special tokens, rounded up to a multiple of 64
SHARDS = 2

TEMPLATE = (
    "<s>{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

Shape = tuple[int, ...]


def byte_alphabet() -> list[str]:
    """The character that byte-level tokenizers write for each byte: itself where it prints."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return [chr(byte if byte in plain else next(spare)) for byte in range(256)]


def tokenizer() -> dict[str, Any]:
    words = [*SPECIAL, *byte_alphabet()]
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "added_tokens": [{"id": index, "content": word, **added} for index, word in enumerate(SPECIAL)],
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": {word: index for index, word in enumerate(words)}, "merges": []},
    }


def shapes() -> dict[str, Shape]:
    attention: dict[str, Shape] = {
        "self_attn.q_proj": (HEADS * HEAD_DIM, HIDDEN),
        "self_attn.k_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
        "self_attn.v_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
    }
    feed_forward: dict[str, Shape] = {
        "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
        "mlp.up_proj": (INTERMEDIATE, HIDDEN),
        "mlp.down_proj": (HIDDEN, INTERMEDIATE),
    }
    norms: dict[str, Shape] = {"input_layernorm": (HIDDEN,), "post_attention_layernorm": (HIDDEN,)}
    tensors: dict[str, Shape] = {
        "model.embed_tokens.weight": (VOCABULARY, HIDDEN),
        "model.norm.weight": (HIDDEN,),
        "lm_head.weight": (VOCABULARY, HIDDEN),
    }
    for layer in range(LAYERS):
        for name, shape in {**attention, **feed_forward, **norms}.items():
            tensors[f"model.layers.{layer}.{name}.weight"] = shape
    return tensors


def bfloat16(value: float) -> bytes:
    """The upper half of a 32-bit float, little-endian."""
    return struct.pack("<f", value)[2:]


def weights(shape: Shape, source: random.Random) -> bytes:
    """Ones for a norm (one dimension), small normal numbers for a matrix."""
    if len(shape) == 1:
        return bfloat16(1.0) * shape[0]
    return b"".join(bfloat16(source.gauss(0.0, 0.05)) for _ in range(shape[0] * shape[1]))


def write_safetensors(path: Path, tensors: dict[str, tuple[Shape, bytes]]) -> None:
    """The format: length of the header (8 bytes), the header as JSON, the bytes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(data for _, data in tensors.values()))


def write_weights(directory: Path) -> None:
    source = random.Random(0)
    tensors = {name: (shape, weights(shape, source)) for name, shape in shapes().items()}
    files: dict[str, str] = {}
    for shard in range(SHARDS):
        file = f"model-{shard + 1:05d}-of-{SHARDS:05d}.safetensors"
        part = {name: tensors[name] for name in sorted(tensors)[shard::SHARDS]}
        write_safetensors(directory / file, part)
        files |= dict.fromkeys(part, file)
    total = sum(len(data) for _, data in tensors.values())
    write_json(directory / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": files})


def config() -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "bfloat16",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": CONTEXT,
        "tie_word_embeddings": False,
        "bos_token_id": SPECIAL.index("<s>"),
        "eos_token_id": SPECIAL.index("</s>"),
    }


def tokenizer_config() -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "</s>",
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE,
    }


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")


def write_model(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    write_json(directory / "config.json", config())
    write_json(directory / "tokenizer.json", tokenizer())
    write_json(directory / "tokenizer_config.json", tokenizer_config())
    write_weights(directory)


if __name__ == "__main__":
    write_model(Path(sys.argv[1]))
