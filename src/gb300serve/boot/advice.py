"""What to do about a failure, with the numbers of its log. An engine's own guess is called a guess."""

from collections import defaultdict
from collections.abc import Mapping

from gb300serve.boot.events import ReceiptValue
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import EngineName

# A sentence is given when the log has every value that it names.
SENTENCES: dict[Reason, tuple[str, ...]] = {
    Reason.UNKNOWN_ARGUMENT: (
        "This engine does not know: {arguments}. Check the spelling against the option table of its version.",
        "{argument} can mean several options: write it out.",
        "If the words begin with `serve`, the image's entrypoint already runs `vllm serve`: leave it out.",
    ),
    Reason.BAD_ARGUMENT_VALUE: (
        "Correct the value of {argument}.",
        "The engine says: {error}",
    ),
    Reason.INVALID_JSON: (
        "The value of {argument} reached the engine whole, but it is not JSON: {value}",
        "Use double quotes inside, no trailing comma, true/false/null in lower case.",
    ),
    Reason.JSON_QUOTING_LOST: (
        "The shell took the JSON of {argument} apart; the engine got: {value}",
        "Put the whole JSON in single quotes.",
    ),
    Reason.UNKNOWN_PARSER: (
        "This engine has no parser {parser}.",
        "It has: {known}",
    ),
    Reason.UNSUPPORTED_ON_ENGINE: (
        "Model runner {runner} does not support {feature}: leave out the option that needs it, or the one that"
        " switches the other runner off.",
        "The engine says: {detail}",
        "Leave one of the two options out, or use an engine version that can combine them.",
    ),
    Reason.MODEL_PATH_NOT_VISIBLE: (
        "{path} is not in the container (or is empty there): the engine takes it for a repository name.",
        "Check the mount of the model and that the engine's model option is the path inside the container.",
    ),
    Reason.MODEL_FILES_INCOMPLETE: (
        "Missing: {files}",
        "Missing or damaged: {path}",
        "Download the checkpoint again at its pinned revision and compare sizes; a Git LFS pointer is not a shard.",
    ),
    Reason.NEEDS_TRUST_REMOTE_CODE: ("Set trust_remote_code: true, if you trust the checkpoint's code.",),
    Reason.MODEL_ARCHITECTURE_UNKNOWN: (
        "This image does not know the model type {model_type}.",
        "This image does not know {architectures}.",
        "Use an image that is newer than the model.",
    ),
    Reason.TOKENIZER_MISSING: (
        "The checkpoint's directory has no usable tokenizer files: complete it, or set the tokenizer option.",
    ),
    Reason.QUANTIZATION_MISMATCH: (
        "The checkpoint is quantized as {checkpoint}, the option says {asked}: leave the option out.",
        "Leave the quantization option out: the engine reads the method from the checkpoint.",
    ),
    Reason.CONTEXT_EXCEEDS_MODEL: (
        "max_model_len {asked} is more than the model was made for: set max_model_len {limit} or less.",
    ),
    Reason.KV_CACHE_TOO_SMALL: (
        "One request of max_model_len {max_model_len} needs {needed_gib} GiB of KV cache, {available_gib} are left.",
        "max_model_len {estimated_max_model_len} would fit.",
        "Or make room: offload more (cpu_offload_gb is {cpu_offload_gb}).",
        "Or raise gpu_memory_utilization ({gpu_memory_utilization}).",
    ),
    Reason.KV_CACHE_NEGATIVE: (
        "Weights, activations and graphs take more than the engine may use: {available_gib} GiB are left.",
        "Offload more (cpu_offload_gb is {cpu_offload_gb}).",
        "Raise gpu_memory_utilization ({gpu_memory_utilization}) or offload more.",
    ),
    Reason.KV_DTYPE_UNSUPPORTED: (
        "This engine cannot keep the KV cache of this model as {dtype}.",
        "Use kv_cache_dtype auto, or a format that the model's attention backend has.",
    ),
    Reason.GPU_OOM: (
        "The GPU was full in the phase {phase}: {tried} were asked for, {free} were free.",
        "Offload more weights, or lower gpu_memory_utilization ({gpu_memory_utilization}) if it failed after loading.",
        "Lower max_num_seqs ({max_num_seqs}).",
        "PYTORCH_CUDA_ALLOC_CONF in the message is the library's guess: it helps against fragmentation only.",
    ),
    Reason.GPU_MEMORY_IN_USE: (
        "Of {total_gib} GiB {free_gib} GiB are free, {desired_gib} GiB are asked for:"
        " another process holds GPU memory (nvidia-smi names it).",
        "Stop it, or set gpu_memory_utilization below {free_gib}/{total_gib}.",
    ),
    Reason.MEMORY_FREED_DURING_PROFILING: (
        "Free GPU memory went from {initial_gib} to {current_gib} GiB while the engine measured:"
        " another process ended meanwhile.",
        "Start again when nothing else uses the GPU.",
    ),
    Reason.HOST_OOM_KILLED: (
        "The host ran out of memory and the kernel killed {process}.",
        "Lower cpu_offload_gb ({cpu_offload_gb}): pinned tensors may be rounded up to powers of two.",
        "Stop what else uses host memory; MemAvailable before the start must exceed what is pinned.",
    ),
    Reason.OFFLOAD_NOT_APPLIED: (
        "{asked_gib} GiB of offload were asked for and nothing was offloaded: no parameter name contains"
        " cpu_offload_params {cpu_offload_params}.",
        "The engine matches whole dotted segments and no wildcards, as in routed_experts.w13_weight.",
    ),
    Reason.PORT_IN_USE: (
        "Port {port} is taken: `ss -ltnp 'sport = :{port}'` names the process; stop it or change port.",
    ),
    Reason.PERMISSION_DENIED: (
        "{path} may not be used by the container's user: change its owner, or the user.",
        "Check the owner of the mounted directories, and that a directory to write to is not mounted read-only.",
    ),
    Reason.IMAGE_WRONG_ARCHITECTURE: (
        "The image is for {image_platform}, the host is {host_platform}.",
        "Use an image built for this host's processor (arm64 on a Station).",
    ),
    Reason.IMAGE_MISSING: (
        "There is no image {image} here, and it could not be pulled.",
        "Check repository, tag and digest, and that you are logged in; registries delete nightly images.",
    ),
    Reason.NO_GPU_RUNTIME: (
        "The container gets no GPU: install the NVIDIA container toolkit, run"
        " `sudo nvidia-ctk runtime configure --runtime=docker`, restart Docker.",
        "Check `nvidia-smi` on the host and that CUDA_VISIBLE_DEVICES is not set.",
    ),
    Reason.ENTRYPOINT_MISSING: (
        "The image cannot run {executable}: it has no such program.",
        "Set the container's entrypoint or the engine's launcher (`vllm serve`).",
    ),
    Reason.DRIVER_TOO_OLD: (
        "The image needs {needed}.",
        "The host's NVIDIA driver is older than the image's CUDA: update the driver, or use an older image.",
    ),
    Reason.KERNEL_UNSUPPORTED: (
        "There is no kernel for {architecture}.",
        "The image was not built for this GPU (GB300 is sm_103): use one that was.",
    ),
    Reason.ENGINE_STARTUP_TIMEOUT: (
        "The API server waited {waited_seconds} s and gave up; the engine was in the phase {phase}: slow, not broken.",
        "Set VLLM_ENGINE_READY_TIMEOUT_S to more than the whole boot takes.",
        "'Slow weight loading' in the message is the library's guess; the phase above is what the log shows.",
    ),
    Reason.ENGINE_HUNG: (
        "{process} made no progress for {timeout_seconds} s, and the engine's watchdog ended it.",
        "The stacks that it wrote before tell where; a slow first request needs a longer --watchdog-timeout.",
    ),
    Reason.SHARED_MEMORY_TOO_SMALL: (
        "{path} has {free_mib} MiB, {needed_mib} MiB are needed.",
        "Set ipc: host or a larger shm_size.",
    ),
    Reason.HOOK_NOT_INSTALLED: (
        "The patch says: {error}",
        "The engine serves without the patch: slower, and not what the recipe describes. Compare patch and image.",
    ),
    Reason.HOOK_ABORTED: (
        "The patch stopped at layer {layer}: {what} is {available_gib} GiB, it keeps {needed_gib} GiB free.",
        "The patch says: {error}",
        "Free host memory first, or offload less.",
    ),
    Reason.CRASH_LOOP: (
        "{boots} boots, and none of the last ones served; the first of them ended with: {reason}.",
        "Remove the restart policy until one boot serves.",
    ),
    Reason.KILLED: (
        "{process} ended by signal {signal} and the log does not say why.",
        "Memory of the host is the usual reason (a guess): `dmesg -T | grep -i oom` tells.",
    ),
    Reason.UNKNOWN: ("The log does not name a cause that is known here; the line given is what it says.",),
}

_OF_SGLANG: dict[Reason, tuple[str, ...]] = {
    Reason.INVALID_JSON: (
        "An option whose value is JSON holds none; the engine says: {error}",
        "Use double quotes inside and put the whole value in single quotes: a shell takes bare ones away.",
    ),
    Reason.CONTEXT_EXCEEDS_MODEL: (
        "context_length {asked} is more than the model was made for: set context_length {limit} or less.",
    ),
    Reason.KV_CACHE_TOO_SMALL: (
        "The pools beside the KV cache need {needed_gib} GiB of {available_gib}.",
        "Lower max_running_requests ({max_running_requests}).",
        "Or raise mem_fraction_static ({mem_fraction_static}).",
    ),
    Reason.KV_CACHE_NEGATIVE: (
        "Weights take all of mem_fraction_static {mem_fraction_static}: nothing is left for the KV cache.",
        "It needs more than {suggested_mem_fraction_static} (the engine's own figure).",
        "Raise mem_fraction_static; where that leaves too little beside it, this model does not fit this GPU.",
    ),
    Reason.GPU_OOM: (
        "The GPU was full in the phase {phase}: {tried} were asked for, {free} were free.",
        "While it loaded: the weights do not fit. Later: lower mem_fraction_static ({mem_fraction_static}),"
        " cuda_graph_max_bs_decode or chunked_prefill_size.",
        "PYTORCH_CUDA_ALLOC_CONF in the message is the library's guess: it helps against fragmentation only.",
    ),
    Reason.GPU_MEMORY_IN_USE: (
        "{free_gib} GiB are free where {desired_gib} GiB were: another process holds GPU memory (nvidia-smi names it).",
    ),
    Reason.QUANTIZATION_MISMATCH: (
        "The checkpoint is quantized as {checkpoint}, the option says {asked}: leave the option out.",
        "Leave the quantization option out, or name the checkpoint's own (modelopt_fp4 for NVFP4).",
    ),
    Reason.PORT_IN_USE: (
        "Port {port} is taken: `ss -ltnp 'sport = :{port}'` names the process; stop it or change port.",
        "SGLang binds its port only when the model is loaded: what answered before was the other server.",
    ),
    Reason.ENGINE_STARTUP_TIMEOUT: (
        "The server's first request to itself got no answer within {waited_seconds} s.",
        "Set SGLANG_WARMUP_TIMEOUT to more seconds, or skip_server_warmup.",
    ),
}

# What the options of an engine, or its ways, change of it.
SENTENCES_OF: dict[EngineName, dict[Reason, tuple[str, ...]]] = {"vllm": {}, "sglang": _OF_SGLANG}

# A damaged line, or one that names its cause without a figure.
NOTHING_MORE = "The line says all that is known of it here."


def advise(reason: Reason, values: Mapping[str, ReceiptValue], engine: EngineName | None = None) -> tuple[str, ...]:
    """The sentences about `reason` whose values are known."""
    sentences = SENTENCES_OF[engine or "vllm"].get(reason, SENTENCES[reason])
    known = defaultdict(lambda: "\0", {name: _short(value) for name, value in values.items()})
    texts = (sentence.format_map(known) for sentence in sentences)
    return tuple(text for text in texts if "\0" not in text) or (NOTHING_MORE,)


def advise_stalled(phase: Phase, silent: float) -> tuple[str, ...]:
    """What to do about a boot that has said nothing new for `silent` seconds."""
    return (
        f"No progress in the phase {phase.value} for {silent / 60:.0f} minutes; heartbeats are no progress.",
        "Look at the disk the weights come from, and at the engine's stack (py-spy dump); then start again.",
    )


def advise_tuning() -> tuple[str, ...]:
    """What to do about a boot that is tuning kernels."""
    return (
        "Kernels are being tuned because no saved set fits this launch: 16 to 81 minutes on a Station. Let it finish:"
        " the set is saved once, at the end.",
    )


def _short(value: ReceiptValue) -> str:
    text = str(value)
    return text if len(text) <= 300 else text[:299] + "…"
