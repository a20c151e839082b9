"""What a launch asks of memory: the engine options that decide it, with the engine's own defaults filled in."""

from dataclasses import dataclass

from gb300serve.engines.base import Options
from gb300serve.engines.vllm import speculation as engine
from gb300serve.engines.vllm.view import DEFAULT_UTILIZATION, VllmOptions, view


@dataclass(frozen=True, slots=True)
class Speculation:
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
    speculation: Speculation | None = None
    enforce_eager: bool = False

    @property
    def offloads(self) -> bool:
        return self.offload_backend in ("auto", "uva") and self.cpu_offload_gb > 0


def _speculation(drafts: engine.Speculation | None) -> Speculation | None:
    if drafts is None:
        return None
    tiers = tuple((tier.start, tier.end, tier.tokens) for tier in drafts.schedule)
    return Speculation(drafts.method or "", drafts.num_speculative_tokens or 0, tiers)


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


def demand_of(options: Options, engine_version: str | None = None, variant: str | None = None) -> Demand:
    """From `engine.options` of a recipe; values of a wrong type count as not given."""
    return demand(view(options), engine_version, variant)
