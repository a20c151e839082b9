"""What vLLM refuses after its parser took the words, in its own words: the simulated engine dies of these.

The process exits with 1. `stage` says how far it came: `config` is 7 to 15 s after its start and before any weight,
`scheduler` is after weights and KV cache, `bind` is when the server starts to listen.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from gb300serve.core.default_ports import DEFAULT_PORTS
from gb300serve.core.values import Value
from gb300serve.engines.base import Options
from gb300serve.engines.narrow import length, number, text
from gb300serve.engines.pydantic_text import unexpected, validation_line, validation_text
from gb300serve.engines.table import OptionTable
from gb300serve.engines.vllm.schedule import SCHEDULE, tiers

Stage: TypeAlias = Literal["config", "scheduler", "bind"]


class Refusal(NamedTuple):
    """The decisive line of a failed start."""

    stage: Stage
    message: str


def refusals(options: Options, table: OptionTable) -> tuple[Refusal, ...]:
    """Every refusal in the order in which the engine would come to it; it dies of the first."""
    return tuple(Refusal(stage, message) for stage, check in _CHECKS for message in check(options, table))


def _model(options: Options, _table: OptionTable) -> Iterator[str]:
    if options.get("model") is None and options.get("served_model_name") is not None:
        yield (
            "ValueError: `model` should be provided as the first positional argument when using `vllm serve`. "
            "i.e. `vllm serve <model> --<arg> <value>`."
        )


def _memory(options: Options, _table: OptionTable) -> Iterator[str]:
    share, gigabytes = number(options.get("gpu_memory_utilization")), number(options.get("cpu_offload_gb"))
    if share is not None and share > 1:
        yield _bound("CacheConfig", "gpu_memory_utilization", "less_than_equal", "less than or equal to 1", share)
    elif share is not None and share <= 0:
        yield _bound("CacheConfig", "gpu_memory_utilization", "greater_than", "greater than 0", share)
    if gigabytes is not None and gigabytes < 0:
        reason = "greater than or equal to 0"
        yield _bound("UVAOffloadConfig", "cpu_offload_gb", "greater_than_equal", reason, gigabytes)


def _bound(title: str, field: str, code: str, reason: str, value: float) -> str:
    line = validation_line(code, f"Input should be {reason}", value, field)
    return f"pydantic_core._pydantic_core.ValidationError: {validation_text(title, [line])}"


def _lengths(options: Options, _table: OptionTable) -> Iterator[str]:
    batch, sequences = length(options.get("max_num_batched_tokens")), length(options.get("max_num_seqs"))
    if batch is not None and sequences is not None and batch < sequences:
        yield (
            f"Value error, max_num_batched_tokens ({batch}) must be greater than or equal to "
            f"max_num_seqs ({sequences})."
        )
    threshold, longest = length(options.get("long_prefill_token_threshold")), length(options.get("max_model_len"))
    if threshold is not None and longest is not None and threshold > longest > 0:
        yield (
            f"Value error, long_prefill_token_threshold ({threshold}) cannot be greater than the "
            f"max_model_len ({longest})."
        )


def _parsers(options: Options, table: OptionTable) -> Iterator[str]:
    tool, reasoning = text(options.get("tool_call_parser")), text(options.get("reasoning_parser"))
    if options.get("enable_auto_tool_choice") is True:
        if not tool:
            yield "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser"
        elif tool not in table.tool_call_parsers and "tool_parser_plugin" not in options:
            names = ",".join(table.tool_call_parsers)
            yield f"KeyError: 'invalid tool call parser: {tool} (chose from {{ {names} }})'"
    known = (*table.reasoning_parsers, "none")
    if reasoning and reasoning not in known and "reasoning_parser_plugin" not in options:
        names = ", ".join(table.reasoning_parsers)
        yield f"KeyError: \"Reasoning parser '{reasoning}' not found. Available parsers: {names}\""


def _speculation(options: Options, table: OptionTable) -> Iterator[str]:
    config, option = options.get("speculative_config"), table.find("speculative_config")
    fields = option.fields if option else None
    if isinstance(config, Mapping) and fields is not None:
        lines = [unexpected(key, value) for key, value in config.items() if key not in fields]
        if lines:
            yield f"pydantic_core._pydantic_core.ValidationError: {validation_text('SpeculativeConfig', lines)}"


def _schedule(options: Options, _table: OptionTable) -> Iterator[str]:
    """The scheduler's own checks, tier by tier in sorted order; it stops at the first."""
    config = options.get("speculative_config")
    written: Value = config.get(SCHEDULE) if isinstance(config, Mapping) else None
    if written is None:
        return
    ranges = sorted(tiers(written))
    if not ranges:
        yield f"ValueError: {SCHEDULE} must not be empty."
        return
    last = 0
    for start, end, tokens in ranges:
        yield from _range(start, end, tokens)
        if start <= last:
            yield "ValueError: Batch-size ranges must be non-overlapping and sorted."
        last = end
    if ranges[0][0] > 1:
        yield (
            "ValueError: The first batch-size range must start at 1 so every runtime batch size has a defined schedule."
        )


def _range(start: int, end: int, tokens: int) -> Iterator[str]:
    if start <= 0 or end <= 0:
        yield f"ValueError: Batch-size range ({start}, {end}) must be positive."
    if start > end:
        yield f"ValueError: Batch-size range start must be <= end for ({start}, {end})."
    if tokens < 0:
        yield f"ValueError: {SCHEDULE} values must be >= 0."


def _port(options: Options, _table: OptionTable) -> Iterator[str]:
    port = number(options.get("port", DEFAULT_PORTS["vllm"]))
    if port is not None and not 0 <= port <= 65535:
        yield "OverflowError: bind(): port must be 0-65535."


_CHECKS: tuple[tuple[Stage, Callable[[Options, OptionTable], Iterator[str]]], ...] = (
    ("config", _model),
    ("config", _parsers),
    ("config", _memory),
    ("config", _lengths),
    ("config", _speculation),
    ("scheduler", _schedule),
    ("bind", _port),
)
