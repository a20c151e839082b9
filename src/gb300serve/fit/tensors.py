"""A checkpoint from what its files say of themselves: config.json and the headers of its tensors, none loaded."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gb300serve.fit.checkpoint import Checkpoint, HostTable, KvCache, Parameter

# A lookup table that the engine can keep on the host has hundreds of millions of rows; no other tensor has one.
TABLE_ROWS = 1_000_000

_EXPERT = re.compile(r"(?P<base>.*\.experts)\.(?:\d+\.)?(?P<part>w1|w2|w3|gate_proj|up_proj|down_proj|gate_up_proj)\b")
_STACKED = {"w1": "w13", "w3": "w13", "gate_proj": "w13", "up_proj": "w13", "gate_up_proj": "w13"}
_LAYER = re.compile(r"\blayers\.(\d+)\.")
_DRAFTER = re.compile(r"(?:^|\.)(?:mtp|draft|dspark)\w*\.")
_BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a safetensors header."""

    name: str
    shape: tuple[int, ...]
    bytes: int


def checkpoint_from(
    repo: str, config: Mapping[str, Any], tensors: Iterable[Tensor], kv_cache_dtype: str = "auto"
) -> Checkpoint:
    """Names as the engine has them: experts of a layer are one `w13` and one `w2` parameter each.

    What a request needs of the KV cache is computed from the attention's dimensions; engines that compress or window
    it need less. Raises KeyError for a configuration without those dimensions.
    """
    found = tuple(tensors)
    nested = config.get("text_config")
    words = nested if isinstance(nested, Mapping) else config
    tables = tuple(_tables(found))
    return Checkpoint(
        repo=repo,
        bytes=sum(tensor.bytes for tensor in found),
        architecture=str(next(iter(config.get("architectures") or ()), "")),
        max_position_embeddings=_size(words, "max_position_embeddings"),
        parameters=_parameters(tensor for tensor in found if not _is_table(tensor)),
        host_tables=tables,
        kv_cache=KvCache(kv_cache_dtype, 0.0, _bytes_per_token(words, kv_cache_dtype), _BLOCK_TOKENS),
    )


def engine_name(name: str) -> str:
    """`….experts.7.w1.weight` → `….experts.routed_experts.w13_weight`; other names as they are."""
    match = _EXPERT.match(name)
    if match is None:
        return name
    rest = name[match.end() :].lstrip(".") or "weight"
    return f"{match['base']}.routed_experts.{_STACKED.get(match['part'], 'w2')}_{rest}"


def _parameters(tensors: Iterable[Tensor]) -> tuple[Parameter, ...]:
    """In the order in which the engine creates them: layer by layer, w13 before w2; the drafter is another model."""
    sizes: dict[str, int] = {}
    for tensor in tensors:
        if not _DRAFTER.search(tensor.name):
            name = engine_name(tensor.name)
            sizes[name] = sizes.get(name, 0) + tensor.bytes
    return tuple(Parameter(name, sizes[name]) for name in sorted(sizes, key=_place))


def _place(name: str) -> tuple[int, str]:
    layer = _LAYER.search(name)
    return (int(layer[1]) if layer else -1, name)


def _is_table(tensor: Tensor) -> bool:
    return "engram" in tensor.name.lower() and len(tensor.shape) == 2 and tensor.shape[0] >= TABLE_ROWS


def _tables(tensors: Iterable[Tensor]) -> Iterator[HostTable]:
    """Weights and scales of one table have its rows and its name but for the last segment."""
    rows: dict[tuple[str, int], tuple[int, int]] = {}
    for tensor in tensors:
        if _is_table(tensor):
            key = (tensor.name.rpartition(".")[0], tensor.shape[0])
            columns, size = rows.get(key, (0, 0))
            rows[key] = (max(columns, tensor.shape[1]), size + tensor.bytes // tensor.shape[0])
    yield from (HostTable(count, columns, size) for (_, count), (columns, size) in rows.items())


def _bytes_per_token(words: Mapping[str, Any], kv_cache_dtype: str) -> float:
    layers = _size(words, "num_hidden_layers")
    width = 1 if kv_cache_dtype.startswith("fp8") else 2
    if words.get("kv_lora_rank"):
        return float(layers * (_size(words, "kv_lora_rank") + _size(words, "qk_rope_head_dim")) * width)
    heads = _size(words, "num_key_value_heads" if words.get("num_key_value_heads") else "num_attention_heads")
    size = _size(words, "head_dim") if words.get("head_dim") else _size(words, "hidden_size") // _heads(words)
    return float(2 * layers * heads * max(size, 1) * width)


def _heads(words: Mapping[str, Any]) -> int:
    return _size(words, "num_attention_heads")


def _size(words: Mapping[str, Any], key: str) -> int:
    """A positive integer; KeyError where there is another thing or nothing."""
    found = words.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found <= 0:
        raise KeyError(key)
    return found
