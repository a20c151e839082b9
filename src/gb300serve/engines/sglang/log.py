"""The log of SGLang: advice for each reason. Its patterns are in signals.py (progress) and causes.py (failures)."""

from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import EngineLog
from gb300serve.engines.sglang.causes import CAUSES
from gb300serve.engines.sglang.engine import PORT
from gb300serve.engines.sglang.signals import COMMON_SIGNALS, SIGNALS

# A sentence is used if the log has every value that it names.
_ADVICE: dict[Reason, tuple[str, ...]] = {
    Reason.INVALID_JSON: (
        "The value of a JSON option is not valid JSON; the engine reports: {error}",
        "Use double quotes inside, and put the whole value in single quotes: a shell removes bare ones.",
    ),
    Reason.QUANTIZATION_MISMATCH: (
        "The checkpoint is quantized as {checkpoint}, but the option is {asked}: remove the option.",
        "Remove the quantization option, or set the checkpoint's own method (modelopt_fp4 for NVFP4).",
    ),
    Reason.CONTEXT_EXCEEDS_MODEL: (
        "context_length {asked} exceeds the model's limit: set context_length to {limit} or less.",
    ),
    Reason.KV_CACHE_TOO_SMALL: (
        "The pools beside the KV cache need {needed_gib} GiB, {available_gib} GiB are available.",
        "Lower max_running_requests ({max_running_requests}).",
        "Or raise mem_fraction_static ({mem_fraction_static}).",
    ),
    Reason.KV_CACHE_NEGATIVE: (
        "Weights take all of mem_fraction_static {mem_fraction_static}: no memory is left for the KV cache.",
        "It must be above {suggested_mem_fraction_static} (the engine's own figure).",
        "Raise mem_fraction_static; if that leaves too little for the rest, the model does not fit this GPU.",
    ),
    Reason.GPU_OOM: (
        "The GPU ran out of memory in the phase {phase}: {tried} were requested, {free} were free.",
        "During loading: the weights do not fit. Later: lower mem_fraction_static ({mem_fraction_static}),"
        " cuda_graph_max_bs_decode or chunked_prefill_size.",
        "PYTORCH_CUDA_ALLOC_CONF in the message is a guess of the library: it only helps against fragmentation.",
    ),
    Reason.GPU_MEMORY_IN_USE: (
        "{free_gib} GiB are free, {desired_gib} GiB were: another process holds GPU memory.",
        "Stop the processes that `nvidia-smi` lists.",
    ),
    Reason.PORT_IN_USE: (
        "Port {port} is in use. `ss -ltnp 'sport = :{port}'` shows the process: stop it, or change the port.",
        "SGLang binds its port only after the model is loaded: earlier responses came from the other server.",
    ),
    Reason.ENGINE_STARTUP_TIMEOUT: (
        "The server's first request to itself got no response within {waited_seconds} s.",
        "Set SGLANG_WARMUP_TIMEOUT to more seconds, or set skip_server_warmup.",
    ),
}

LOG = EngineLog(
    engine="sglang",
    title="SGLang",
    healthy_early=True,
    signals=SIGNALS,
    common_signals=COMMON_SIGNALS,
    causes=CAUSES,
    package="/sglang/",
    usage_errors=("sglang serve: error: ", "launch_server.py: error: "),
    default_port=PORT,
    advised_arguments=(
        "context_length",
        "mem_fraction_static",
        "max_running_requests",
        "kv_cache_dtype",
        "quantization",
    ),
    advice=_ADVICE,
    unlevelled_header="bracketed",
)
