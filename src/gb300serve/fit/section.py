"""The `memory` section of a recipe: the checkpoint with its figures that are impossible, and measured sizes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gb300serve.core.diagnostics import Diagnostic, Severity, diagnostic, dotted_path
from gb300serve.document.nodes import Path
from gb300serve.fit.checkpoint import (
    GIB,
    LAYER,
    Checkpoint,
    Constant,
    HostNeed,
    HostTable,
    KvCache,
    Parameter,
    Residency,
    checkpoint_at_path,
    creation_order,
    find_checkpoint,
)
from gb300serve.plan.check import check
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import MemorySection, ModelSection, Recipe

# Figures are often written with two decimals.
ROUNDING_GIB = 0.01


def with_memory_section(known: Checkpoint | None, memory: MemorySection | None, repo: str) -> Checkpoint | None:
    """The checkpoint with the figures of the recipe's section; None if both together lack a size."""
    if memory is None:
        return known
    base = known or _new(memory, repo)
    if base is None:
        return None
    tables = (
        tuple(HostTable(table.rows, 0, table.row_bytes, table.scale_bytes) for table in memory.host_tables)
        or base.host_tables
    )
    weights = base.weights_bytes if memory.weights_gib is None else round(memory.weights_gib * GIB)
    residency, host, graphs = memory.residency, memory.host, memory.graphs_gib
    stated = residency and Residency(residency.hbm_expert_gib, residency.grace_expert_gib, residency.basis)
    return replace(
        base,
        bytes=weights + sum(table.bytes for table in tables),
        # F of other weights is not that of these boots.
        boots=base.boots if abs(weights - base.weights_bytes) <= ROUNDING_GIB * GIB else (),
        parameters=tuple(_parameters_of_section(memory)) or base.parameters,
        host_tables=tables,
        kv_cache=_cache(memory) or base.kv_cache,
        max_position_embeddings=memory.max_model_len or base.max_position_embeddings,
        overhead=_overhead(memory) or base.overhead,
        residency=stated or base.residency,
        host_need=HostNeed(host.needed_gib, host.left_gib, host.basis) if host else base.host_need,
        graphs_gib=Constant(graphs.value, "computed", (f"the recipe: {graphs.basis}",)) if graphs else base.graphs_gib,
    )


def missing_sizes(memory: MemorySection | None) -> tuple[str, ...]:
    """The keys that the section lacks to describe a checkpoint that the package does not know."""
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


def _parameters_of_section(memory: MemorySection) -> Iterator[Parameter]:
    yield from (Parameter(item.name, item.bytes) for item in memory.parameters if "{layer}" not in item.name)
    numbers = [(item, frozenset(item.layer_numbers(memory.layers or 1))) for item in memory.parameters]
    for layer in range(memory.layers or 1):
        for item, layers in numbers:
            if "{layer}" in item.name and layer in layers:
                yield Parameter(item.name.replace("{layer}", str(layer)), item.bytes)


def _cache(memory: MemorySection) -> KvCache | None:
    cache = memory.kv_cache
    return None if cache is None else KvCache("auto", cache.fixed_gib, cache.bytes_per_token, cache.block_tokens)


def _overhead(memory: MemorySection) -> Constant | None:
    if memory.overhead_gib is None:
        return None
    return Constant(memory.overhead_gib, "computed", (f"the recipe: {memory.basis or 'no basis given'}",))


def measured_sizes(found: Checkpoint, *, with_cache: bool) -> dict[str, Any]:
    """The entries of a `memory` section with the sizes of a checkpoint that was read from its files.

    `with_cache`: also the KV cache, which is computed from the dimensions of the attention.
    """
    sizes: dict[str, Any] = {"weights_gib": max(round(found.weights_bytes / GIB, 4), SMALLEST_GIB)}
    if found.parameters:
        sizes |= _layered(found.parameters)
    # An empty list too: it replaces an inherited one.
    sizes["host_tables"] = [
        {"rows": table.rows, "row_bytes": table.row_bytes, "scale_bytes": table.scale_bytes}
        for table in found.host_tables
    ]
    if with_cache:
        cache = found.kv_cache
        sizes["kv_cache"] = {"bytes_per_token": round(cache.bytes_per_token), "block_tokens": cache.block_tokens}
    return sizes | {"max_model_len": found.max_position_embeddings}


SMALLEST_GIB = 0.0001


def _layered(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """`layers` and `parameters`: one entry for the layers that have a parameter of the same name and size."""
    numbers: dict[tuple[str, int], list[int]] = {}
    for parameter in parameters:
        layer = LAYER.search(parameter.name)
        if layer is not None:
            template = f"{parameter.name[: layer.start(1)]}{{layer}}{parameter.name[layer.end(1) :]}"
            numbers.setdefault((template, parameter.bytes), []).append(int(layer[1]))
    count = 1 + max((layer for layers in numbers.values() for layer in layers), default=0)
    entries = [
        {"name": name, "bytes": size} | ({"in_layers": _ranges(layers)} if len(layers) < count else {})
        for (name, size), layers in sorted(numbers.items(), key=lambda item: creation_order(item[0][0])[1:])
    ]
    found = {"layers": count, "parameters": entries}
    if tuple(_parameters_of_section(MemorySection.model_validate(found))) == tuple(parameters):
        return found
    # The order matters more than a short list: the engine offloads the first ones first.
    return {"parameters": [{"name": parameter.name, "bytes": parameter.bytes} for parameter in parameters]}


def _ranges(numbers: Sequence[int]) -> str:
    """`0-2,7` for 0, 1, 2, 7."""
    firsts = [number for number in numbers if number - 1 not in numbers]
    lasts = [number for number in numbers if number + 1 not in numbers]
    pairs = zip(firsts, lasts, strict=True)
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in pairs)


def with_sizes(memory: MemorySection | None, sizes: Mapping[str, Any]) -> MemorySection:
    """The section with these entries."""
    stated = memory.model_dump(exclude_none=True) if memory else {}
    return MemorySection.model_validate({**stated, **sizes})


def other_sizes(memory: MemorySection | None, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the entries that the section does not state already."""
    wanted, stated = MemorySection.model_validate(sizes), memory or MemorySection()
    return {key: value for key, value in sizes.items() if getattr(wanted, key) != getattr(stated, key)}


def known_checkpoint(model: ModelSection | None) -> Checkpoint | None:
    """The checkpoint of the package for a recipe's model, by its repository, else by its path."""
    if model is None:
        return None
    return find_checkpoint(model.repo) if model.repo else checkpoint_at_path(model.path or "")


def recipe_problems(loaded: LoadedRecipe) -> Iterator[Diagnostic]:
    """The findings of `plan.check`, and impossible figures of the memory section."""
    yield from check(loaded)
    if loaded.recipe is not None and loaded.recipe.memory is not None:
        yield from _impossible_figures(loaded, loaded.recipe, loaded.recipe.memory)


IMPOSSIBLE = "FIT013"
# A draft model that a launch without speculation does not load is a smaller part of its checkpoint than this.
DRAFTER_SHARE = 0.1
# With these options the weights in memory are not those of the checkpoint.
_OTHER_WEIGHTS = ("quantization", "hf_overrides")
_DRAFTS = ("speculative_config", "speculative_algorithm")


def _impossible_figures(loaded: LoadedRecipe, recipe: Recipe, memory: MemorySection) -> Iterator[Diagnostic]:
    known = known_checkpoint(recipe.model)
    weights = memory.weights_gib or (known.weights_bytes / GIB if known else None)
    found = list(_contradictions(memory, weights))
    if weights is not None and memory.overhead_gib is not None:
        found += _overhead_too_small(recipe, memory, weights, memory.overhead_gib)
    for key, message, hint, severity in found:
        path: Path = ("memory", *key)
        yield diagnostic(IMPOSSIBLE, message, hint, loaded.place(path), dotted_path(path), severity=severity)


_Figure = tuple[Path, str, str, Severity]


def _overhead_too_small(recipe: Recipe, memory: MemorySection, weights: float, overhead: float) -> Iterator[_Figure]:
    """F holds all weights, also those that are offloaded, and the CUDA graphs."""
    options = recipe.engine.options
    graphs = memory.graphs_gib.value if memory.graphs_gib and not options.get("enforce_eager") else 0.0
    if overhead >= weights + graphs - ROUNDING_GIB:
        return
    held = f"{weights:.2f} GiB of weights" + (f" and {graphs:.2f} GiB of CUDA graphs" if graphs else "")
    message = f"overhead_gib is {overhead:.2f}, less than the {held}, which it includes"
    hint = "write F of: KV cache = utilization x total + offloaded - F (`fit REF --calibrate boot.log` prints it)"
    drafts = any(options.get(key) is not None for key in _DRAFTS)
    if any(options.get(key) is not None for key in _OTHER_WEIGHTS):
        yield ("overhead_gib",), message, "set weights_gib to what this launch loads", "warning"
    elif not drafts and overhead >= (1 - DRAFTER_SHARE) * weights + graphs:
        reason = "possible only if the checkpoint contains a draft model that this launch does not load"
        yield ("overhead_gib",), f"{message}: {reason}", hint, "warning"
    else:
        yield ("overhead_gib",), message, hint, "error"


def _contradictions(memory: MemorySection, weights: float | None) -> Iterator[_Figure]:
    """Parts of the weights that exceed the weights, and parts of other figures that exceed these."""
    parts = sum(parameter.bytes for parameter in _parameters_of_section(memory)) / GIB
    if weights is not None and parts > weights + ROUNDING_GIB:
        message = f"the parameters add up to {parts:.2f} GiB, more than the {weights:.2f} GiB of weights"
        yield ("parameters",), message, "correct layers, the bytes, or weights_gib", "error"
    residency = memory.residency
    experts = residency.hbm_expert_gib + residency.grace_expert_gib if residency else 0.0
    if weights is not None and experts > weights + ROUNDING_GIB:
        message = f"the experts add up to {experts:.2f} GiB, more than the {weights:.2f} GiB of weights"
        yield ("residency",), message, "correct hbm_expert_gib, grace_expert_gib, or weights_gib", "error"
    for index, table in enumerate(memory.host_tables):
        if table.scale_bytes >= table.row_bytes:
            message = f"scale_bytes is {table.scale_bytes}, but it is a part of the {table.row_bytes} bytes of a row"
            yield ("host_tables", index, "scale_bytes"), message, "write fewer than row_bytes", "error"
    for index, parameter in enumerate(memory.parameters):
        last = max(parameter.layer_numbers(memory.layers or 1), default=0)
        if parameter.in_layers is not None and last >= (memory.layers or 1):
            message = f"in_layers names layer {last}, but the layers are 0 to {(memory.layers or 1) - 1}"
            yield ("parameters", index, "in_layers"), message, "correct in_layers, or raise layers", "error"
