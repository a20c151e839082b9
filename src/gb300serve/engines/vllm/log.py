"""The log of vLLM: advice for each reason. Its patterns are in signals.py (progress) and causes.py (failures)."""

from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import EngineLog
from gb300serve.engines.vllm.causes import CAUSES
from gb300serve.engines.vllm.engine import PORT
from gb300serve.engines.vllm.signals import COMMON_SIGNALS, SIGNALS

# A sentence is used if the log has every value that it names.
_ADVICE: dict[Reason, tuple[str, ...]] = {
    Reason.UNKNOWN_ARGUMENT: (
        "The engine rejected {arguments}: check the spelling against the option table of its version.",
        "{argument} is ambiguous: write the option in full.",
        "If the arguments begin with `serve`, remove it: the image's entrypoint is already `vllm serve`.",
    ),
    Reason.UNSUPPORTED_ON_ENGINE: (
        "Model runner {runner} does not support {feature}: remove the option that needs it, or the option that"
        " disables the other runner.",
        "The engine reports: {detail}",
        "Remove one of the two options, or use an engine version that supports the combination.",
    ),
    Reason.CONTEXT_EXCEEDS_MODEL: (
        "max_model_len {asked} exceeds the model's limit: set max_model_len to {limit} or less.",
    ),
    Reason.KV_CACHE_TOO_SMALL: (
        "One request of max_model_len {max_model_len} needs {needed_gib} GiB of KV cache, {available_gib} are left.",
        "max_model_len {estimated_max_model_len} would fit.",
        "Or offload more (cpu_offload_gb is {cpu_offload_gb}).",
        "Or raise gpu_memory_utilization ({gpu_memory_utilization}).",
    ),
    Reason.KV_CACHE_NEGATIVE: (
        "Weights, activations and graphs exceed the memory that the engine may use: {available_gib} GiB are left.",
        "Offload at least {short_gib} GiB more (cpu_offload_gb is {cpu_offload_gb}), and what the KV cache is to have.",
        "Or raise gpu_memory_utilization ({gpu_memory_utilization}): each 0.01 adds a hundredth of the GPU's memory.",
    ),
    Reason.GPU_OOM: (
        "The GPU ran out of memory in the phase {phase}: {tried} were requested, {free} were free.",
        "Offload more weights. If it failed after loading, lower gpu_memory_utilization ({gpu_memory_utilization}).",
        "Lower max_num_seqs ({max_num_seqs}).",
        "PYTORCH_CUDA_ALLOC_CONF in the message is a guess of the library: it only helps against fragmentation.",
    ),
    Reason.GPU_MEMORY_IN_USE: (
        "{free_gib} of {total_gib} GiB are free, {desired_gib} GiB are requested: another process holds GPU memory"
        " (`nvidia-smi` shows it).",
        "Stop it, or set gpu_memory_utilization to {usable_utilization} or less.",
    ),
    Reason.OFFLOAD_NOT_APPLIED: (
        "{asked_gib} GiB of offload were requested, but no parameter name matches cpu_offload_params"
        " {cpu_offload_params}.",
        "The engine matches whole dotted segments, as in routed_experts.w13_weight; wildcards do not work.",
    ),
    Reason.ENGINE_STARTUP_TIMEOUT: (
        "The API server gave up after {waited_seconds} s, in the phase {phase}: the boot was slow, not broken.",
        "Set VLLM_ENGINE_READY_TIMEOUT_S to more than the whole boot takes.",
        "'Slow weight loading' in the message is a guess of the library; the phase above is from the log.",
    ),
}

LOG = EngineLog(
    engine="vllm",
    title="vLLM",
    signals=SIGNALS,
    common_signals=COMMON_SIGNALS,
    causes=CAUSES,
    package="/vllm/",
    usage_errors=("vllm serve: error: ", "api_server.py: error: "),
    default_port=PORT,
    advised_arguments=(
        "max_model_len",
        "gpu_memory_utilization",
        "cpu_offload_gb",
        "cpu_offload_params",
        "max_num_seqs",
        "kv_cache_memory_bytes",
    ),
    advice=_ADVICE,
    own_header="levelled",
    offload_argument="cpu_offload_gb",
)
