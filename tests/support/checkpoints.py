"""Checkpoints of tests: config.json and safetensors files with headers, and no tensor in them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONFIG: Mapping[str, Any] = {
    "architectures": ["AcmeForCausalLM"],
    "max_position_embeddings": 65536,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "hidden_size": 1024,
}


def safetensors(path: Path, tensors: Mapping[str, tuple[int, ...]]) -> None:
    """A file whose header says one byte an element; the data itself is left out."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    start = 0
    for name, shape in tensors.items():
        size = 1
        for side in shape:
            size *= side
        header[name] = {"dtype": "U8", "shape": list(shape), "data_offsets": [start, start + size]}
        start += size
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)


def write_checkpoint(directory: Path, files: Mapping[str, Mapping[str, tuple[int, ...]]]) -> Path:
    """The directory with config.json, the files and, with several of them, their index."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(CONFIG))
    for name, tensors in files.items():
        safetensors(directory / name, tensors)
    if len(files) > 1:
        weights = {tensor: name for name, tensors in files.items() for tensor in tensors}
        (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    return directory


def write_whole(directory: Path) -> Path:
    """The smallest checkpoint that is complete: config.json, and one file that is as long as its header says."""
    write_checkpoint(directory, {"model.safetensors": {"x": (4,)}})
    with (directory / "model.safetensors").open("ab") as file:
        file.write(bytes(4))
    return directory


def experts(layers: int, size: int) -> dict[str, tuple[int, ...]]:
    """`layers` layers with two experts each: w1 and w3 of `size` bytes, w2 of twice that."""
    parts = (("gate_proj", size), ("up_proj", size), ("down_proj", 2 * size))
    return {
        f"model.layers.{layer}.mlp.experts.{expert}.{part}.weight": (many,)
        for layer in range(layers)
        for expert in range(2)
        for part, many in parts
    }
