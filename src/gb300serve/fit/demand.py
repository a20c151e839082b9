"""What a launch asks of memory: the engine options that decide it, with the engine's own defaults filled in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# vLLM 0.29 to 0.33.
DEFAULT_UTILIZATION = 0.92


@dataclass(frozen=True, slots=True)
class Speculation:
    """Draft tokens: the method, how many at most, and how many at which batch size."""

    method: str
    tokens: int
    schedule: tuple[tuple[int, ...], ...] = ()


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


def speculation(config: Mapping[str, Any] | None) -> Speculation | None:
    """From `speculative_config`; None without one."""
    if not config:
        return None
    schedule = config.get("num_speculative_tokens_per_batch_size") or ()
    return Speculation(
        method=str(config.get("method")),
        tokens=int(config.get("num_speculative_tokens") or 0),
        schedule=tuple(tuple(int(number) for number in row) for row in schedule),
    )


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(map(str, value)) if isinstance(value, Sequence) else ()


def demand_of(options: Mapping[str, Any], engine_version: str | None = None, variant: str | None = None) -> Demand:
    """From options by the engine's names with underscores, values already typed (numbers are numbers)."""
    tables = options.get("engram_config")
    utilization = options.get("gpu_memory_utilization")
    return Demand(
        engine_version=engine_version,
        variant=variant,
        cpu_offload_gb=float(options.get("cpu_offload_gb") or 0),
        cpu_offload_params=_words(options.get("cpu_offload_params")),
        offload_backend=str(options.get("offload_backend") or "auto"),
        host_tables=not isinstance(tables, Mapping) or bool(tables.get("cpu_offload", True)),
        gpu_memory_utilization=DEFAULT_UTILIZATION if utilization is None else float(utilization),
        kv_cache_memory_bytes=options.get("kv_cache_memory_bytes"),
        kv_cache_dtype=str(options.get("kv_cache_dtype") or "auto"),
        max_model_len=options.get("max_model_len"),
        max_num_seqs=options.get("max_num_seqs"),
        max_num_batched_tokens=options.get("max_num_batched_tokens"),
        speculation=speculation(options.get("speculative_config")),
        enforce_eager=bool(options.get("enforce_eager")),
    )
