"""What differs between the engines when a boot is judged: the names of their arguments."""

from collections.abc import Mapping
from dataclasses import dataclass

from gb300serve.boot.signals.model import EngineName


@dataclass(frozen=True, slots=True)
class LogDialect:
    """One engine's. `named`: the arguments that advice may name; `offloads`: GiB are asked with `cpu_offload_gb`."""

    named: tuple[str, ...]
    offloads: bool


DIALECTS: Mapping[EngineName, LogDialect] = {
    "vllm": LogDialect(
        ("max_model_len", "gpu_memory_utilization", "cpu_offload_gb", "cpu_offload_params", "max_num_seqs"),
        offloads=True,
    ),
    "sglang": LogDialect(
        ("context_length", "mem_fraction_static", "max_running_requests", "kv_cache_dtype", "quantization"),
        offloads=False,
    ),
}


def dialect(engine: EngineName | None) -> LogDialect:
    """Of the engine that a log told, vLLM's while it has told none."""
    return DIALECTS[engine or "vllm"]
