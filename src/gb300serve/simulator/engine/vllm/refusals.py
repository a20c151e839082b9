"""What vLLM refuses after parsing and before it loads anything: its own messages, exit code 1."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gb300serve.simulator.engine.settings import Settings, option_table

_MAIN = (
    "/usr/local/bin/vllm:8:<module>:sys.exit(main())",
    "vllm/entrypoints/cli/main.py:120:main:args.dispatch_function(args)",
)
_SERVE = (*_MAIN, "vllm/entrypoints/cli/serve.py:156:cmd:uvloop.run(run_server(args))")
_CONFIG = (*_SERVE, "vllm/engine/arg_utils.py:2240:create_engine_config:model_config = self.create_model_config()")
_PYDANTIC = (
    "pydantic/_internal/_dataclasses.py:121:__init__:"
    "s.__pydantic_validator__.validate_python(ArgsKwargs(args, kwargs), self_instance=s)"
)
_FURTHER = "    For further information visit https://errors.pydantic.dev/2.14/v/"


@dataclass(frozen=True, slots=True)
class EngineTraceback:
    """A traceback's frames (`file:line:function:source`) and its last lines."""

    frames: tuple[str, ...]
    error: str
    echoed: bool = True
    """The arguments were printed before."""
    resolved: bool = False
    """The architecture was printed before."""


def refusal(settings: Settings) -> EngineTraceback | None:
    """The first refusal, in the order of vLLM's checks; None if it refuses nothing."""
    return next((refused for check in _CHECKS for refused in check(settings)), None)


def _invalid(config: str, place: str, message: str, kind: str, value: object) -> str:
    shown = f"input_value={value!r}, input_type={type(value).__name__}"
    return (
        f"pydantic_core._pydantic_core.ValidationError: 1 validation error for {config}\n"
        f"{place}\n  {message} [type={kind}, {shown}]\n{_FURTHER}{kind}"
    )


def _value_error(config: str, message: str) -> str:
    return (
        f"pydantic_core._pydantic_core.ValidationError: 1 validation error for {config}\n"
        f"  Value error, {message} [type=value_error, "
        "input_value=ArgsKwargs((), {'runner_t..., 'stream_interval': 1}), input_type=ArgsKwargs]\n"
        f"{_FURTHER}value_error"
    )


def _in_config(error: str) -> EngineTraceback:
    return EngineTraceback((*_CONFIG, _PYDANTIC), error, resolved=True)


def _out_of_range(config: str, place: str, limit: str, value: object) -> EngineTraceback:
    kind = "_".join(word for word in limit.split()[:-1] if word not in ("or", "to"))
    return _in_config(_invalid(config, place, f"Input should be {limit}", kind, value))


def _tool_choice(settings: Settings) -> Iterator[EngineTraceback]:
    if settings.options.get("enable_auto_tool_choice") and not settings.options.get("tool_call_parser"):
        frames = (*_MAIN, "vllm/entrypoints/cli/serve.py:171:validate:validate_parsed_serve_args(args)")
        error = "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser"
        yield EngineTraceback(frames, error, echoed=False)


def _parsers(settings: Settings) -> Iterator[EngineTraceback]:
    table, options = option_table(settings.environment), settings.options
    tools, reasoning = options.get("tool_call_parser"), options.get("reasoning_parser")
    frame = "vllm/entrypoints/launchers/launcher.py:362:validate_api_server_args:raise KeyError("
    if options.get("enable_auto_tool_choice") and tools not in table.tool_call_parsers:
        known = ",".join(sorted(table.tool_call_parsers))
        error = f"KeyError: 'invalid tool call parser: {tools} (chose from {{ {known} }})'"
        yield EngineTraceback((*_SERVE, frame), error)
    if reasoning and reasoning not in table.reasoning_parsers:
        known = ", ".join(sorted(table.reasoning_parsers))
        error = f"KeyError: \"Reasoning parser '{reasoning}' not found. Available parsers: {known}\""
        frame = "vllm/reasoning/abs_reasoning_parsers.py:83:get_reasoning_parser:raise KeyError("
        yield EngineTraceback((*_SERVE, frame), error)


def _model_path(settings: Settings) -> Iterator[EngineTraceback]:
    if not settings.model_is_visible:
        frames = (
            *_SERVE,
            "vllm/engine/arg_utils.py:914:__post_init__:self.model = get_model_path(self.model, self.revision)",
            "vllm/transformers_utils/repo_utils.py:301:get_model_path:return hf_api().snapshot_download(",
            "huggingface_hub/utils/_validators.py:133:validate_repo_id:raise HFValidationError(",
        )
        error = (
            "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or "
            f"'namespace/repo_name': '{settings.model}'. Use `repo_type` argument if needed."
        )
        yield EngineTraceback(frames, error)


def _port(settings: Settings) -> Iterator[EngineTraceback]:
    if not 0 <= settings.port <= 65535:
        frame = "vllm/entrypoints/launchers/launcher.py:332:create_server_socket:sock.bind(addr)"
        yield EngineTraceback((*_SERVE, frame), "OverflowError: bind(): port must be 0-65535.")


def _context(settings: Settings) -> Iterator[EngineTraceback]:
    most, length = settings.checkpoint.max_position_embeddings, settings.max_model_len
    if length > most and (settings.environment.env or {}).get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") != "1":
        message = (
            f"User-specified max_model_len ({length}) is greater than the derived max_model_len "
            f"(max_position_embeddings={float(most)} or model_max_length=None in model's config.json). To allow "
            "overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1. VLLM_ALLOW_LONG_MAX_MODEL_LEN "
            "must be used with extreme caution. If the model uses relative position encoding (RoPE), positions "
            "exceeding derived_max_model_len lead to nan."
        )
        yield _in_config(_value_error("ModelConfig", message))


def _sizes(settings: Settings) -> Iterator[EngineTraceback]:
    options = settings.options
    utilization, offloaded = options.get("gpu_memory_utilization"), options.get("cpu_offload_gb")
    if utilization is not None and float(utilization) > 1:
        yield _out_of_range("CacheConfig", "gpu_memory_utilization", "less than or equal to 1", utilization)
    if utilization is not None and float(utilization) <= 0:
        yield _out_of_range("CacheConfig", "gpu_memory_utilization", "greater than 0", utilization)
    if offloaded is not None and float(offloaded) < 0:
        yield _out_of_range("UVAOffloadConfig", "cpu_offload_gb", "greater than or equal to 0", offloaded)
    for name in ("max_num_seqs", "max_num_batched_tokens"):
        if (value := options.get(name)) is not None and int(value) < 1:
            yield _out_of_range("SchedulerConfig", name, "greater than or equal to 1", value)


def _scheduler(settings: Settings) -> Iterator[EngineTraceback]:
    batched, seqs = settings.max_num_batched_tokens, settings.max_num_seqs
    if settings.options.get("max_num_seqs") and batched < seqs:
        message = f"max_num_batched_tokens ({batched}) must be greater than or equal to max_num_seqs ({seqs})."
        yield _in_config(_value_error("SchedulerConfig", message))
    threshold = int(settings.options.get("long_prefill_token_threshold") or 0)
    if threshold > settings.max_model_len:
        message = (
            f"long_prefill_token_threshold ({threshold}) cannot be greater than the max_model_len "
            f"({settings.max_model_len})."
        )
        yield _in_config(_value_error("SchedulerConfig", message))


def _tables(settings: Settings) -> Iterator[EngineTraceback]:
    if settings.options.get("engram_config") and not settings.checkpoint.host_tables:
        message = "EngramConfig requires a model with supported Engram embeddings and non-empty n-gram layer ids."
        yield _in_config(_value_error("VllmConfig", message))


def _speculation(settings: Settings) -> Iterator[EngineTraceback]:
    drafts = settings.options.get("speculative_config")
    if not isinstance(drafts, Mapping):
        return
    yield from _speculation_fields(settings, drafts)
    if drafts.get("method") == "mtp" and settings.checkpoint.drafter == "dspark":
        message = "DeepSeek V4.1 has no classic-MTP draft model. Use speculative method 'dspark' instead of 'mtp'."
        yield _in_config(_value_error("SpeculativeConfig", message))
    tokens = drafts.get("num_speculative_tokens")
    if isinstance(tokens, int) and tokens < 1:
        yield _out_of_range("SpeculativeConfig", "num_speculative_tokens", "greater than 0", tokens)
    for index, row in enumerate(drafts.get("num_speculative_tokens_per_batch_size") or ()):
        if isinstance(row, (list, tuple)) and len(row) < 3:
            place = f"num_speculative_tokens_per_batch_size.{index}.{len(row)}"
            yield _in_config(_invalid("SpeculativeConfig", place, "Field required", "missing", tuple(row)))


def _speculation_fields(settings: Settings, drafts: Mapping[str, Any]) -> Iterator[EngineTraceback]:
    option = option_table(settings.environment).find("speculative_config")
    fields = option.fields if option and option.fields else None
    for name, value in drafts.items():
        if fields is not None and name not in fields:
            message = "Unexpected keyword argument"
            yield _in_config(_invalid("SpeculativeConfig", name, message, "unexpected_keyword_argument", value))


_CHECKS: tuple[Callable[[Settings], Iterator[EngineTraceback]], ...] = (
    _tool_choice, _parsers, _port, _model_path, _context, _sizes, _scheduler, _tables, _speculation,
)  # fmt: skip


def late_refusal(settings: Settings) -> str | None:
    """The ValueError with which the scheduler refuses the draft schedule, after weights and KV cache; or None."""
    drafts = settings.options.get("speculative_config")
    tiers = drafts.get("num_speculative_tokens_per_batch_size") if isinstance(drafts, Mapping) else None
    if tiers is None:
        return None
    if not tiers:
        return "num_speculative_tokens_per_batch_size must not be empty."
    return _tier_refusal(sorted(tuple(map(int, row)) for row in tiers))


def _tier_refusal(tiers: list[tuple[int, ...]]) -> str | None:
    for start, end, tokens in tiers:
        if start <= 0 or end <= 0:
            return f"Batch-size range ({start}, {end}) must be positive."
        if start > end:
            return f"Batch-size range start must be <= end for ({start}, {end})."
        if tokens < 0:
            return "num_speculative_tokens_per_batch_size values must be >= 0."
    if any(after[0] <= before[1] for before, after in pairwise(tiers)):
        return "Batch-size ranges must be non-overlapping and sorted."
    if tiers[0][0] != 1:
        return "The first batch-size range must start at 1 so every runtime batch size has a defined schedule."
    return None
