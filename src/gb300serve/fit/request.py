"""The memory request of a launch, and the parameters that vLLM's UVA backend offloads for it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gb300serve.core.values import compact_json
from gb300serve.engines.base import Options
from gb300serve.engines.vllm.options import DEFAULT_UTILIZATION, VllmOptions, view
from gb300serve.engines.vllm.schedule import SpeculationOptions
from gb300serve.fit.checkpoint import GIB, Checkpoint, Parameter, Variant
from gb300serve.recipe.model import MountSection, Recipe


@dataclass(frozen=True, slots=True)
class SpeculationRequest:
    """Speculation: method, maximum draft tokens, and the schedule of (first batch size, last, tokens)."""

    method: str
    tokens: int
    schedule: tuple[tuple[int, int, int], ...] = ()
    adaptive: bool = False
    """Adaptive verification, which captures full graphs whatever the options state."""

    @property
    def lengths_between(self) -> tuple[int, ...]:
        """Drafted lengths of the schedule other than 1 and the maximum: each needs decode graphs of its own."""
        return tuple(sorted({tokens for _, _, tokens in self.schedule} - {0, 1, self.tokens}))


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """One launch. `max_model_len` None means the checkpoint's maximum, -1 as much as fits."""

    engine_version: str | None = None
    variant: str | None = None
    cpu_offload_gb: float = 0.0
    cpu_offload_params: tuple[str, ...] = ()
    offload_backend: str = "auto"
    host_tables: bool = True
    gpu_memory_utilization: float = DEFAULT_UTILIZATION
    kv_cache_memory_bytes: int | None = None
    kv_cache_dtype: str = "auto"
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    speculation: SpeculationRequest | None = None
    enforce_eager: bool = False
    capture_sizes: tuple[int, ...] | None = None
    """Sizes of the CUDA graphs in tokens; None means that the engine derives them from the slots."""
    others: tuple[tuple[str, str], ...] = ()
    """Options with an unknown effect on memory, sorted by name, with their values as JSON."""

    @property
    def offloads(self) -> bool:
        return self.offload_backend in ("auto", "uva") and self.cpu_offload_gb > 0

    @property
    def is_adaptive(self) -> bool:
        """Whether the drafts are verified adaptively."""
        return self.speculation is not None and self.speculation.adaptive

    @property
    def rounds_offload(self) -> bool:
        """Whether offloaded parameters are pinned, so that each occupies a power of two."""
        return not self._has("container.env.VLLM_WEIGHT_OFFLOADING_DISABLE_PIN_MEMORY", "1") and self.rounds_tables

    @property
    def rounds_tables(self) -> bool:
        """Whether the allocator rounds pinned tensors; it does not round those above its cache limit."""
        return not self._has("container.env.PYTORCH_CUDA_ALLOC_CONF", "pinned_max_cached_size_mb:")

    def _has(self, name: str, text: str) -> bool:
        return any(name == key and text in value for key, value in self.others)


def _speculation(options: SpeculationOptions | None, *, adaptive: bool) -> SpeculationRequest | None:
    if options is None:
        return None
    tiers = tuple((tier.start, tier.end, tier.tokens) for tier in options.schedule)
    return SpeculationRequest(options.method or "", options.num_speculative_tokens or 0, tiers, adaptive)


def request_from_options(
    options: Options, engine_version: str | None = None, variant: str | None = None, *, seen: VllmOptions | None = None
) -> MemoryRequest:
    """From `engine.options`; values of a wrong type count as absent. `seen` is the view of the options, if known.

    `variant` names a patch that changes the memory.
    """
    seen = seen or view(options)
    return MemoryRequest(
        engine_version=engine_version,
        variant=variant,
        cpu_offload_gb=seen.offload.gigabytes,
        cpu_offload_params=seen.offload.params,
        offload_backend=seen.offload.backend,
        host_tables=seen.engram_cpu_offload is not False,
        gpu_memory_utilization=seen.gpu_memory_utilization,
        kv_cache_memory_bytes=seen.kv_cache_memory_bytes,
        kv_cache_dtype=seen.kv_cache_dtype or "auto",
        max_model_len=seen.max_model_len,
        max_num_seqs=seen.max_num_seqs,
        max_num_batched_tokens=seen.max_num_batched_tokens,
        speculation=_speculation(seen.speculation, adaptive=_is_adaptive(options)),
        enforce_eager=seen.enforce_eager,
        capture_sizes=seen.capture_sizes,
        others=_others(options),
    )


# Options that have a field of their own in the request.
_READ = frozenset(
    {
        "cpu_offload_gb", "cpu_offload_params", "offload_backend", "engram_config", "gpu_memory_utilization",
        "kv_cache_memory_bytes", "kv_cache_dtype", "max_model_len", "max_num_seqs", "max_num_batched_tokens",
        "speculative_config", "enforce_eager", "cudagraph_capture_sizes",
    }
)  # fmt: skip
# Options without an effect on the engine's memory: names, addresses, parsers, logs, sources of weights.
_NO_EFFECT = frozenset(
    {
        "model", "model_tag", "served_model_name", "tokenizer", "revision", "tokenizer_revision", "trust_remote_code",
        "load_format", "safetensors_load_strategy", "download_dir", "seed", "generation_config",
        "override_generation_config", "host", "port", "uds", "api_key", "allowed_origins", "root_path",
        "uvicorn_log_level", "disable_uvicorn_access_log", "disable_log_stats", "enable_log_requests",
        "enable_prompt_tokens_details", "chat_template", "chat_template_content_format", "default_chat_template_kwargs",
        "reasoning_effort_map", "response_role", "tool_call_parser", "reasoning_parser", "enable_auto_tool_choice",
        "long_prefill_token_threshold", "enable_prefix_caching", "enable_flashinfer_autotune",
    }
)  # fmt: skip
_ADAPTIVE = "enable_adaptive_verification"
_SPECULATION_READ = frozenset({"method", "num_speculative_tokens", "num_speculative_tokens_per_batch_size", _ADAPTIVE})
_RANKS = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


def _is_adaptive(options: Options) -> bool:
    config = options.get("speculative_config")
    return isinstance(config, Mapping) and config.get(_ADAPTIVE) is True


def is_on_one_gpu(options: Mapping[str, Any]) -> bool:
    """Whether the options leave the whole model on one GPU."""
    return all(options.get(key) in (None, 1) for key in _RANKS)


def _others(options: Options) -> tuple[tuple[str, str], ...]:
    others = {
        name: compact_json(value)
        for name, value in options.items()
        if name not in _READ and name not in _NO_EFFECT and not (name in _RANKS and value == 1)
    }
    speculation = options.get("speculative_config")
    for key, value in speculation.items() if isinstance(speculation, Mapping) else ():
        if key not in _SPECULATION_READ:
            others[f"speculative_config.{key}"] = compact_json(value)
    return tuple(sorted(others.items()))


def with_environment(request: MemoryRequest, environment: Iterable[tuple[str, str]]) -> MemoryRequest:
    """The request with the part of the environment that may change its memory."""
    added = tuple(environment)
    return replace(request, others=tuple(sorted({*request.others, *added}))) if added else request


_CACHES = "/root/.cache"
_HARMLESS = frozenset(
    {"VLLM_LOGGING_LEVEL", "VLLM_API_KEY", "VLLM_AUTOTUNE_CACHE_KEY", "VLLM_CACHE_ROOT", "VLLM_HOST_IP", "VLLM_PORT"}
)
_ENGINE = ("VLLM_", "PYTORCH_", "FLASHINFER_", "CUDA_")


def recipe_request(recipe: Recipe, checkpoint: Checkpoint, *, seen: VllmOptions | None = None) -> MemoryRequest:
    """The memory request of a vLLM recipe, with the parts of its container that may change the memory."""
    variant = checkpoint.variant(recipe.container.env)
    request = request_from_options(recipe.engine.options, recipe.engine.version, variant, seen=seen)
    return with_environment(request, recipe_environment(recipe, checkpoint))


def recipe_environment(recipe: Recipe, checkpoint: Checkpoint) -> tuple[tuple[str, str], ...]:
    """Mounts, variables and arguments that may change the memory, without the files of a known hook."""
    container = recipe.container
    name = checkpoint.variant(container.env)
    variables = [(name, value) for name, value in container.env.items() if name.startswith(_ENGINE)]
    environment = list(_patches(container.mounts, checkpoint.variants[name] if name else None))
    environment += [(f"container.env.{name}", value) for name, value in variables if name not in _HARMLESS]
    if recipe.engine.extra_args:
        environment.append(("engine.extra_args", compact_json(recipe.engine.extra_args)))
    return tuple(environment)


def _patches(mounts: Iterable[MountSection], hook: Variant | None) -> Iterator[tuple[str, str]]:
    """Mounts that may patch the engine. Beside a known hook, only files of Python packages count."""
    hashes = {digest for mount in mounts for digest in _hashes(mount)}
    if hook is not None and hashes.isdisjoint(hook.sha256):
        yield "container.mounts", f"{hook.env} with an unknown sha256"
    for mount in mounts:
        if mount.target.startswith(_CACHES):
            continue
        if hook is None or ("-packages/" in mount.target and not hook.sha256.intersection(_hashes(mount))):
            yield "container.mounts", mount.target


def _hashes(mount: MountSection) -> tuple[str, ...]:
    if mount.sha256 is None:
        return ()
    return (mount.sha256,) if isinstance(mount.sha256, str) else tuple(mount.sha256.values())


@dataclass(frozen=True, slots=True)
class OffloadResult:
    """The requested size and the parameters that move. `unmatched` are the patterns that match no parameter."""

    requested_gib: float
    moved: tuple[Parameter, ...]
    unmatched: tuple[str, ...] = ()

    @property
    def moved_bytes(self) -> int:
        return sum(parameter.bytes for parameter in self.moved)

    @property
    def moved_gib(self) -> float:
        return self.moved_bytes / GIB

    @property
    def rounded_bytes(self) -> int:
        """Upper bound: every pinned tensor rounded up to a power of two, as some allocators do."""
        return sum(rounded_up(parameter.bytes) for parameter in self.moved)


def rounded_up(size: int) -> int:
    """The next power of two at or above `size` bytes."""
    return 1 << (size - 1).bit_length()


def is_match(pattern: str, name: str) -> bool:
    """Whether `pattern` matches whole segments of `name`, as in the engine: `.pattern.` occurs in `.name.`."""
    return f".{pattern}." in f".{name}."


def offload(parameters: Sequence[Parameter], requested_gib: float, patterns: Sequence[str]) -> OffloadResult:
    """Move whole parameters, in order, until their total reaches the requested size: the last one exceeds it.

    So the offload grows in steps. Without patterns, every parameter matches. Source: vLLM's `offloader/uva.py`.
    """
    budget = int(requested_gib * GIB)
    chosen = [p for p in parameters if not patterns or any(is_match(pattern, p.name) for pattern in patterns)]
    moved: list[Parameter] = []
    total = 0
    for parameter in chosen:
        if total >= budget:
            break
        moved.append(parameter)
        total += parameter.bytes
    unmatched = tuple(pattern for pattern in patterns if not any(is_match(pattern, p.name) for p in parameters))
    return OffloadResult(requested_gib, tuple(moved), unmatched)
