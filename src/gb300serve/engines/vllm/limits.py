"""Ranges that the engine checks after its parser, one option at a time."""

from collections.abc import Iterator

from gb300serve.core.values import Value, compact_json
from gb300serve.engines.base import Options
from gb300serve.engines.problem import Problem
from gb300serve.engines.vllm.narrow import length, number

DEFAULT_PORT = 8000  # vllm.entrypoints.openai.cli_args
# The engine's configuration classes; the key of a recipe, the smallest value, and what a smaller one would mean.
LEAST = {
    "block_size": 1,
    "cpu_offload_gb": 0,
    "data_parallel_size": 1,
    "long_prefill_token_threshold": 0,
    "max_num_batched_tokens": 1,
    "max_num_seqs": 1,
    "offload_group_size": 0,
    "offload_num_in_group": 1,
    "pipeline_parallel_size": 1,
    "shutdown_timeout": 0,
    "tensor_parallel_size": 1,
}


def check_limits(options: Options) -> Iterator[Problem]:
    """Values that the parser takes and the configuration refuses."""
    for key, least in LEAST.items():
        found = number(options.get(key))
        if found is not None and found < least:
            yield _outside(key, options[key], f"at least {least}")
    yield from _check_utilization(options.get("gpu_memory_utilization"))
    yield from _check_port(options.get("port"))
    longest = length(options.get("max_model_len"))
    if longest is not None and longest < 1 and longest != -1:
        yield _outside("max_model_len", options["max_model_len"], "at least 1, or auto")


def _outside(key: str, value: Value, wanted: str, hint: str | None = None) -> Problem:
    return Problem(
        (key,), "OPT007", f"{key} is {compact_json(value)}, not {wanted}", hint or f"write a number {wanted}"
    )


def _check_utilization(value: Value) -> Iterator[Problem]:
    share = number(value)
    if share is not None and not 0 < share <= 1:
        percent = f"a fraction is meant: write {share / 100:g}" if 1 < share <= 100 else None
        yield _outside("gpu_memory_utilization", value, "above 0 and at most 1", percent)


def _check_port(value: Value) -> Iterator[Problem]:
    port = number(value)
    if port is not None and not 0 <= port <= 65535:
        yield _outside("port", value, "between 0 and 65535")
