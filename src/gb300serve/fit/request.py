"""The staircase: which parameters vLLM's UVA backend moves to the host, and how much that is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gb300serve.core.values import compact_json
from gb300serve.engines.base import Options
from gb300serve.engines.vllm import schedule as engine
from gb300serve.engines.vllm.options import DEFAULT_UTILIZATION, VllmOptions, view
from gb300serve.fit.checkpoint import GIB, Parameter
from gb300serve.recipe.model import Recipe


@dataclass(frozen=True, slots=True)
class SpeculationRequest:
    """Draft tokens: the method, how many at most, and how many at which batch size."""

    method: str
    tokens: int
    schedule: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Demand:
    """One launch. `max_model_len` None means what the checkpoint has; -1 means as much as fits."""

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
    others: tuple[tuple[str, str], ...] = ()
    """Options whose part in the memory is not known, with their values as JSON, by name."""

    @property
    def offloads(self) -> bool:
        return self.offload_backend in ("auto", "uva") and self.cpu_offload_gb > 0


def _speculation(drafts: engine.SpeculationOptions | None) -> SpeculationRequest | None:
    if drafts is None:
        return None
    tiers = tuple((tier.start, tier.end, tier.tokens) for tier in drafts.schedule)
    return SpeculationRequest(drafts.method or "", drafts.num_speculative_tokens or 0, tiers)


def demand(view: VllmOptions, engine_version: str | None = None, variant: str | None = None) -> Demand:
    """From the typed view of an engine's options; `variant` names a patch with a memory of its own."""
    return Demand(
        engine_version=engine_version,
        variant=variant,
        cpu_offload_gb=view.offload.gigabytes,
        cpu_offload_params=view.offload.params,
        offload_backend=view.offload.backend,
        host_tables=view.engram_cpu_offload is not False,
        gpu_memory_utilization=view.gpu_memory_utilization,
        kv_cache_memory_bytes=view.kv_cache_memory_bytes,
        kv_cache_dtype=view.kv_cache_dtype or "auto",
        max_model_len=view.max_model_len,
        max_num_seqs=view.max_num_seqs,
        max_num_batched_tokens=view.max_num_batched_tokens,
        speculation=_speculation(view.speculation),
        enforce_eager=view.enforce_eager,
    )


def demand_of(
    options: Options, engine_version: str | None = None, variant: str | None = None, *, seen: VllmOptions | None = None
) -> Demand:
    """From `engine.options` of a recipe; values of a wrong type count as not given. `seen` is their view, if known."""
    asked = demand(seen or view(options), engine_version, variant)
    others = _others(options)
    return replace(asked, others=others) if others else asked


# Options that the rest of this module reads.
_READ = frozenset(
    {
        "cpu_offload_gb", "cpu_offload_params", "offload_backend", "engram_config", "gpu_memory_utilization",
        "kv_cache_memory_bytes", "kv_cache_dtype", "max_model_len", "max_num_seqs", "max_num_batched_tokens",
        "speculative_config", "enforce_eager",
    }
)  # fmt: skip
# Options without a part in the engine's memory: names, addresses, parsers, logs, where weights come from.
_NO_PART = frozenset(
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
_DRAFTS_READ = frozenset({"method", "num_speculative_tokens", "num_speculative_tokens_per_batch_size"})
_ONE_GPU = frozenset({"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"})


def _others(options: Options) -> tuple[tuple[str, str], ...]:
    def counts(name: str) -> bool:
        return name not in _READ and name not in _NO_PART and not (name in _ONE_GPU and options[name] == 1)

    found = {name: compact_json(options[name]) for name in options if counts(name)}
    drafts = options.get("speculative_config")
    if isinstance(drafts, Mapping):
        found |= {f"speculative_config.{key}": compact_json(drafts[key]) for key in drafts if key not in _DRAFTS_READ}
    return tuple(sorted(found.items()))


def with_others(demand: Demand, others: Iterable[tuple[str, str]]) -> Demand:
    """The demand with more of what may change its memory."""
    more = tuple(others)
    return replace(demand, others=tuple(sorted({*demand.others, *more}))) if more else demand


_CACHES = "/root/.cache"
_HARMLESS = frozenset(
    {"VLLM_LOGGING_LEVEL", "VLLM_API_KEY", "VLLM_AUTOTUNE_CACHE_KEY", "VLLM_CACHE_ROOT", "VLLM_HOST_IP", "VLLM_PORT"}
)
_ENGINE = ("VLLM_", "PYTORCH_", "FLASHINFER_", "CUDA_")


def around(recipe: Recipe, variant: str | None) -> tuple[tuple[str, str], ...]:
    """Name and value of each; the mounts of a patch that is known as `variant` are part of that."""
    found = [
        ("container.mounts", mount.target)
        for mount in recipe.container.mounts
        if variant is None and not mount.target.startswith(_CACHES)
    ]
    found += [
        (f"container.env.{name}", value)
        for name, value in recipe.container.env.items()
        if name.startswith(_ENGINE) and name not in _HARMLESS
    ]
    if recipe.engine.extra_args:
        found.append(("engine.extra_args", compact_json(recipe.engine.extra_args)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class OffloadResult:
    """What was asked for and what moves. `unmatched` are the patterns that no known parameter has."""

    asked_gib: float
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
        """The bound when every pinned tensor is rounded up to a power of two, as some allocators do."""
        return sum(rounded_up(parameter.bytes) for parameter in self.moved)


def rounded_up(size: int) -> int:
    """The next power of two at or above `size` bytes."""
    return 1 << (size - 1).bit_length()


def matches(pattern: str, name: str) -> bool:
    """Whole segments only, as the engine tests it: `.pattern.` occurs in `.name.`."""
    return f".{pattern}." in f".{name}."


def offload(parameters: Sequence[Parameter], asked_gib: float, patterns: Sequence[str]) -> OffloadResult:
    """Walk the parameters in order; the running total is tested before each, so the last one overshoots.

    Without patterns every parameter matches. Source: vLLM's `offloader/uva.py`.
    """
    budget = int(asked_gib * GIB)
    chosen = parameters if not patterns else [p for p in parameters if any(matches(word, p.name) for word in patterns)]
    moved: list[Parameter] = []
    total = 0
    for parameter in chosen:
        if total >= budget:
            break
        moved.append(parameter)
        total += parameter.bytes
    unmatched = tuple(word for word in patterns if not any(matches(word, p.name) for p in parameters))
    return OffloadResult(asked_gib, tuple(moved), unmatched)
