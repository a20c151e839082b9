"""The options that the rest of the program reasons about, typed: offload, lengths, speculation, parsers, address."""

from collections.abc import Mapping
from dataclasses import dataclass

from gb300serve.core.values import Value
from gb300serve.engines.base import Options, flag, is_list, is_whole, length, number, text
from gb300serve.engines.options import POSITIONAL, first_text, texts, whole
from gb300serve.engines.vllm.engine import PORT
from gb300serve.engines.vllm.schedule import SpeculationOptions, speculation

DEFAULT_UTILIZATION = 0.92  # vllm.config.cache.CacheConfig, 0.29 to 0.33


@dataclass(frozen=True, slots=True)
class OffloadOptions:
    """Weights in host memory. `gigabytes` are GiB per GPU; the engine exceeds them by up to one parameter."""

    backend: str
    """`uva`, `prefetch` or `auto`; auto is uva as soon as `gigabytes` is above 0."""
    gigabytes: float
    params: tuple[str, ...]
    """Dotted segments of parameter names: `.P.` must occur in `.name.`. Empty means every parameter."""
    group_size: int
    """Of the prefetch backend: layers in a group, 0 when it is off."""


@dataclass(frozen=True, slots=True)
class VllmOptions:
    """The options that the program interprets. None means not set: the engine decides."""

    model: str | None
    host: str | None
    port: int
    max_model_len: int | None
    """Tokens; -1 for `auto`."""
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    long_prefill_token_threshold: int | None
    gpu_memory_utilization: float
    kv_cache_memory_bytes: int | None
    kv_cache_dtype: str | None
    tensor_parallel_size: int
    data_parallel_size: int
    offload: OffloadOptions
    engram_cpu_offload: bool | None
    """None without an `engram_config`; the field's own default is true."""
    speculation: SpeculationOptions | None
    tool_call_parser: str | None
    reasoning_parser: str | None
    enable_auto_tool_choice: bool
    enforce_eager: bool
    capture_sizes: tuple[int, ...] | None
    """Sizes of the CUDA graphs in tokens; None means that the engine derives them."""
    flashinfer_autotune: bool | None


def view(options: Options) -> VllmOptions:
    """The typed view of checked options; values of a wrong type count as not set."""
    given = options.get
    return VllmOptions(
        model=first_text(options, POSITIONAL, "model"),
        host=text(given("host")),
        port=whole(given("port"), PORT),
        max_model_len=length(given("max_model_len")),
        max_num_seqs=length(given("max_num_seqs")),
        max_num_batched_tokens=length(given("max_num_batched_tokens")),
        long_prefill_token_threshold=length(given("long_prefill_token_threshold")),
        gpu_memory_utilization=number(given("gpu_memory_utilization")) or DEFAULT_UTILIZATION,
        kv_cache_memory_bytes=length(given("kv_cache_memory_bytes")),
        kv_cache_dtype=text(given("kv_cache_dtype")),
        tensor_parallel_size=whole(given("tensor_parallel_size"), 1),
        data_parallel_size=whole(given("data_parallel_size"), 1),
        offload=OffloadOptions(
            backend=text(options.get("offload_backend")) or "auto",
            gigabytes=number(options.get("cpu_offload_gb")) or 0.0,
            params=texts(options.get("cpu_offload_params")),
            group_size=whole(options.get("offload_group_size"), 0),
        ),
        engram_cpu_offload=_engram(given("engram_config")),
        speculation=speculation(given("speculative_config")),
        tool_call_parser=text(given("tool_call_parser")),
        reasoning_parser=text(given("reasoning_parser")),
        enable_auto_tool_choice=flag(given("enable_auto_tool_choice")) or False,
        enforce_eager=flag(given("enforce_eager")) or False,
        capture_sizes=_capture_sizes(options),
        flashinfer_autotune=_autotune(options),
    )


def _capture_sizes(options: Options) -> tuple[int, ...] | None:
    config = options.get("compilation_config")
    sizes = options.get("cudagraph_capture_sizes")
    if sizes is None and isinstance(config, Mapping):
        sizes = config.get("cudagraph_capture_sizes")
    if not is_list(sizes):
        return None
    return tuple(sorted({size for size in sizes if is_whole(size)}))


def _engram(config: Value) -> bool | None:
    if not isinstance(config, Mapping):
        return None
    offloaded = flag(config.get("cpu_offload"))
    return True if offloaded is None else offloaded


def _autotune(options: Options) -> bool | None:
    said = flag(options.get("enable_flashinfer_autotune"))
    config = options.get("kernel_config")
    if said is None and isinstance(config, Mapping):
        return flag(config.get("enable_flashinfer_autotune"))
    return said
