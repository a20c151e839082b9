"""A checkpoint's sizes from a recipe's `memory` section, over what the package knows."""

from collections.abc import Iterator
from dataclasses import replace

from gb300serve.fit.checkpoint import GIB, Checkpoint, Constant, HostTable, KvCache, Parameter
from gb300serve.recipe.model import MemorySection


def sized(known: Checkpoint | None, memory: MemorySection | None, repo: str) -> Checkpoint | None:
    """The checkpoint with what the section says of it; None where the sizes of neither are enough."""
    if memory is None:
        return known
    base = known or _new(memory, repo)
    if base is None:
        return None
    tables = tuple(HostTable(table.rows, 0, table.row_bytes) for table in memory.host_tables) or base.host_tables
    weights = base.weights_bytes if memory.weights_gib is None else round(memory.weights_gib * GIB)
    return replace(
        base,
        bytes=weights + sum(table.bytes for table in tables),
        parameters=tuple(_parameters(memory)) or base.parameters,
        host_tables=tables,
        kv_cache=_cache(memory) or base.kv_cache,
        max_position_embeddings=memory.max_model_len or base.max_position_embeddings,
        overhead=_overhead(memory) or base.overhead,
    )


def missing(memory: MemorySection | None) -> tuple[str, ...]:
    """The keys that a checkpoint which the package does not know still lacks."""
    wanted = ("weights_gib", "kv_cache", "max_model_len")
    return tuple(key for key in wanted if memory is None or getattr(memory, key) is None)


def _new(memory: MemorySection, repo: str) -> Checkpoint | None:
    cache = _cache(memory)
    if memory.weights_gib is None or cache is None or memory.max_model_len is None:
        return None
    return Checkpoint(
        repo=repo,
        bytes=round(memory.weights_gib * GIB),
        architecture="",
        max_position_embeddings=memory.max_model_len,
        parameters=(),
        host_tables=(),
        kv_cache=cache,
    )


def _parameters(memory: MemorySection) -> Iterator[Parameter]:
    once = [one for one in memory.parameters if "{layer}" not in one.name]
    yield from (Parameter(one.name, one.bytes) for one in once)
    for layer in range(memory.layers or 1):
        for one in memory.parameters:
            if "{layer}" in one.name:
                yield Parameter(one.name.replace("{layer}", str(layer)), one.bytes)


def _cache(memory: MemorySection) -> KvCache | None:
    said = memory.kv_cache
    return None if said is None else KvCache("auto", said.fixed_gib, said.bytes_per_token, said.block_tokens)


def _overhead(memory: MemorySection) -> Constant | None:
    if memory.overhead_gib is None:
        return None
    return Constant(memory.overhead_gib, "computed", (f"the recipe: {memory.basis or 'no basis given'}",))
