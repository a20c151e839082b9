"""The engine `vllm`: its options checked against the tables and against what it refuses later."""

from collections.abc import Iterable, Iterator

from gb300serve.core.text import suggestion
from gb300serve.core.values import Value
from gb300serve.engines.base import Options, Problem, length, number, text
from gb300serve.engines.check import check_least, check_port, meant_fraction, outside
from gb300serve.engines.tables import OptionTable, TableChoice, TabledEngine
from gb300serve.engines.vllm.schedule import check_schedule

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


def check_parsers(options: Options, tables: Iterable[OptionTable]) -> Iterator[Problem]:
    """Names that no table knows. A plugin registers names of its own, so nothing is said beside one."""
    known = tuple(tables)
    if "tool_parser_plugin" not in options:
        names = sorted({name for table in known for name in table.tool_call_parsers})
        # Alone, without automatic tool choice, the engine takes any name and ignores it.
        grave = options.get("enable_auto_tool_choice") is True
        yield from _check_name(options, "tool_call_parser", names, known[-1].version, grave=grave)
    if "reasoning_parser_plugin" not in options:
        names = sorted({name for table in known for name in table.reasoning_parsers})
        yield from _check_name(options, "reasoning_parser", [*names, "none"], known[-1].version, grave=True)


def _check_name(options: Options, key: str, names: list[str], version: str, *, grave: bool) -> Iterator[Problem]:
    said = text(options.get(key))
    if not said or said in names:
        return
    close = suggestion(said, names)
    hint = f"write {close}" if close else f"one of {', '.join(names)}"
    message = f"{key} is '{said}', which vllm {version} does not register"
    yield Problem((key,), "OPT012", message, hint, None if grave else "warning")


def _check_meaning(options: Options, choice: TableChoice) -> Iterator[Problem]:
    yield from check_limits(options)
    yield from check_schedule(options.get("speculative_config"))
    yield from check_parsers(options, choice.tables)


VLLM = TabledEngine("vllm", _check_meaning)
