"""Ranges that the engine checks after its parser, one option at a time."""

from collections.abc import Iterator

from gb300serve.core.values import Value
from gb300serve.engines.base import Options
from gb300serve.engines.limits import check_least, check_port, meant_fraction, outside
from gb300serve.engines.narrow import length, number
from gb300serve.engines.problem import Problem

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
    yield from check_least(options, LEAST)
    yield from _check_utilization(options.get("gpu_memory_utilization"))
    yield from check_port(options.get("port"))
    longest = length(options.get("max_model_len"))
    if longest is not None and longest < 1 and longest != -1:
        yield outside("max_model_len", options["max_model_len"], "at least 1, or auto")


def _check_utilization(value: Value) -> Iterator[Problem]:
    share = number(value)
    if share is not None and not 0 < share <= 1:
        yield outside("gpu_memory_utilization", value, "above 0 and at most 1", meant_fraction(share))
