"""What to do about a failure, with the numbers of its log. A guess of an engine is called a guess."""

import math
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping

from gb300serve.boot.events import ReceiptValue
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import EngineLog
from gb300serve.core.text import truncate

# A sentence is used if the log has every value that it names. An engine's own sentences (EngineLog.advice) come first.
SENTENCES: dict[Reason, tuple[str, ...]] = {
    Reason.UNKNOWN_ARGUMENT: (
        "The engine rejected {arguments}: check the spelling against the option table of its version.",
        "{argument} is ambiguous: write the option in full.",
    ),
    Reason.BAD_ARGUMENT_VALUE: ("Correct the value of {argument}.", "The engine reports: {error}"),
    Reason.INVALID_JSON: (
        "The value of {argument} is not valid JSON: {value}",
        "Use double quotes inside, no trailing comma, and lower-case true/false/null.",
    ),
    Reason.JSON_QUOTING_LOST: (
        "The shell split the JSON of {argument}; the engine received: {value}",
        "Put the whole JSON in single quotes.",
    ),
    Reason.UNKNOWN_PARSER: ("The engine has no parser {parser}.", "Available: {known}"),
    Reason.UNSUPPORTED_ON_ENGINE: (
        "The engine reports: {detail}",
        "Remove one of the two options, or use an engine version that supports the combination.",
    ),
    Reason.MODEL_PATH_NOT_VISIBLE: (
        "{path} does not exist in the container (or is empty), so the engine treats it as a repository name.",
        "Check the model's mount, and that the engine's model option is the path inside the container.",
    ),
    Reason.MODEL_FILES_INCOMPLETE: (
        "Missing: {files}",
        "Missing or damaged: {path}",
        "Download the checkpoint again at its pinned revision and compare sizes; a Git LFS pointer is not a shard.",
    ),
    Reason.NEEDS_TRUST_REMOTE_CODE: ("Set trust_remote_code: true if you trust the checkpoint's code.",),
    Reason.MODEL_ARCHITECTURE_UNKNOWN: (
        "The image does not support the model type {model_type}.",
        "The image does not support {architectures}.",
        "Use an image that is newer than the model.",
    ),
    Reason.TOKENIZER_MISSING: (
        "The checkpoint has no usable tokenizer files: complete it, or set the tokenizer option.",
    ),
    Reason.QUANTIZATION_MISMATCH: (
        "The checkpoint is quantized as {checkpoint}, but the option is {asked}: remove the option.",
        "Remove the quantization option: the engine reads the method from the checkpoint.",
    ),
    Reason.KV_DTYPE_UNSUPPORTED: (
        "The engine does not support a KV cache of type {dtype} for this model.",
        "Set kv_cache_dtype: auto, or a type that the model's attention backend supports.",
    ),
    Reason.MEMORY_FREED_DURING_PROFILING: (
        "Free GPU memory changed from {initial_gib} to {current_gib} GiB during profiling: another process ended.",
        "Start again when no other process uses the GPU.",
    ),
    Reason.HOST_OOM_KILLED: (
        "The host ran out of memory and the kernel killed {process}.",
        "Lower cpu_offload_gb ({cpu_offload_gb}): the size of a pinned tensor may be rounded up to a power of two.",
        "Stop other programs that use host memory; before the start, MemAvailable must exceed the pinned memory.",
    ),
    Reason.PORT_IN_USE: (
        "Port {port} is in use. `ss -ltnp 'sport = :{port}'` shows the process: stop it, or change the port.",
    ),
    Reason.PERMISSION_DENIED: (
        "The container's user has no access to {path}: change the owner of the path, or the user.",
        "Check the owner of the mounted directories (`ls -ln`), and that writable ones are not mounted read-only.",
    ),
    Reason.IMAGE_WRONG_ARCHITECTURE: (
        "The image is for {image_platform}, the host is {host_platform}.",
        "Use an image built for the host's processor (arm64 on a Station).",
    ),
    Reason.IMAGE_MISSING: (
        "The image {image} is not on this machine and could not be pulled.",
        "Check the repository, tag, digest and your login. Registries delete nightly images.",
    ),
    Reason.NO_GPU_RUNTIME: (
        "The container has no GPU. Install the NVIDIA Container Toolkit, run"
        " `sudo nvidia-ctk runtime configure --runtime=docker` and restart Docker.",
        "Check `nvidia-smi` on the host, and that CUDA_VISIBLE_DEVICES is not set.",
    ),
    Reason.ENTRYPOINT_MISSING: (
        "The image does not contain the program {executable}.",
        "Set container.entrypoint, or engine.launcher (such as `vllm serve`).",
    ),
    Reason.DRIVER_TOO_OLD: (
        "The image requires {needed}.",
        "The host's NVIDIA driver is too old for the image's CUDA: update the driver, or use an older image.",
    ),
    Reason.KERNEL_UNSUPPORTED: (
        "No kernel exists for {architecture}.",
        "The image was not built for this GPU (GB300 is sm_103): use an image that was.",
        "Or choose another attention, MoE or quantization backend: other kernels may support the GPU.",
    ),
    Reason.ENGINE_HUNG: (
        "{process} made no progress for {timeout_seconds} s, and the engine's watchdog stopped it.",
        "The stacks printed before show where. If the first request is slow, raise --watchdog-timeout.",
    ),
    Reason.SHARED_MEMORY_TOO_SMALL: (
        "{path} has {free_mib} MiB free, {needed_mib} MiB are required.",
        "Set `container: {{ipc: host}}` (`--ipc=host`), or a larger shm_size: Docker gives 64 MiB.",
    ),
    Reason.WEIGHTS_MISMATCH: (
        "Checkpoint and model differ at: {weights}",
        "The engine reports: {error}",
        "The download is not at fault: use an engine version that knows this checkpoint's layout, or another conversion"
        " of the model.",
    ),
    Reason.IMAGE_BROKEN: (
        "Packages of the image do not fit together: {error}",
        "Use the engine's own image without changes. `docker run --rm --entrypoint pip IMAGE check` lists conflicts.",
        "Start without mounted patches: they may replace a module of another version.",
    ),
    Reason.DRIVER_MISMATCH: (
        "The loaded kernel module and the driver's libraries have different versions: `sudo reboot`.",
        "If it stays: `cat /proc/driver/nvidia/version` and `nvidia-smi` must show the same version on the host, and"
        " LD_LIBRARY_PATH in the image must not contain a cuda/compat directory.",
    ),
    Reason.KERNEL_BUILD_FAILED: (
        "The compiler did not find {file}.",
        "The compiler reports: {error}",
        "Use an image with the whole CUDA toolkit and a C++ compiler (often tagged `devel`), or with prebuilt kernels.",
        "If it compiled before, delete the partial build (~/.cache/flashinfer, ~/.triton) and start again.",
    ),
    Reason.MODEL_ACCESS_DENIED: (
        "Accept the model's terms at https://huggingface.co/{repo} with the account of the token.",
        "Give the container a token that may read the model:"
        " `container: {{secrets: {{HF_TOKEN: {{env: HF_TOKEN}}}}}}`.",
        "Or download the model on the host (`hf auth login`, `hf download`) and mount it.",
    ),
    Reason.DISK_FULL: (
        "`df -h {quoted_path}` shows the full disk.",
        "`df -h` shows the full disk, `docker system df` what Docker holds.",
        "Free space, or put the cache on a larger disk.",
    ),
    Reason.GPU_FAULT: (
        "`sudo dmesg -T | grep -i xid` shows whether the GPU itself reported a fault.",
        "Without an Xid of the hardware, a kernel has a bug: try another attention or MoE backend or engine version.",
        "CUDA_LAUNCH_BLOCKING=1 makes the traceback show the kernel that failed.",
    ),
    Reason.IMAGE_PULL_REFUSED: (
        "`docker login` with an account that may pull the image (`docker login nvcr.io`, `docker login ghcr.io`).",
        "A rate limit ends by itself: Docker Hub counts the pulls of six hours.",
    ),
    Reason.CONTAINER_NAME_TAKEN: (
        "`docker ps -a --filter name={quoted_container}` shows the container that holds the name.",
        "`docker rm {quoted_container}` removes it if it is stopped; or choose another container.name.",
    ),
    Reason.MOUNT_SOURCE_MISSING: (
        "`ls -ld {quoted_path}`: a mounted path does not exist on the host, or is not of the expected type.",
        "Create it or download the model to it, or correct the mount.",
    ),
    Reason.DISTRIBUTED_INIT_FAILED: (
        "The engine's processes did not find each other: {error}",
        "On several nodes: `nc -vz ADDRESS PORT` from each to the first, and set NCCL_SOCKET_IFNAME and"
        " GLOO_SOCKET_IFNAME to the interface between them.",
        "NCCL_DEBUG=INFO makes the next boot print the reason.",
    ),
    Reason.HOOK_NOT_INSTALLED: (
        "The patch reports: {error}",
        "The engine serves without the patch: slower, and not as the recipe describes. Compare patch and image.",
    ),
    Reason.HOOK_ABORTED: (
        "The patch stopped at layer {layer}: {what} is {available_gib} GiB, and it keeps {needed_gib} GiB free.",
        "The patch reports: {error}",
        "Free host memory first, or offload less.",
    ),
    Reason.CRASH_LOOP: (
        "{boots} boots, and the last ones ended before they served. The first of them ended with: {reason}.",
        "Remove the restart policy until a boot serves.",
    ),
    Reason.KILLED: (
        "{process} was ended by signal {signal}; the log does not show why.",
        "The usual reason is a lack of host memory (a guess): check `dmesg -T | grep -i oom`.",
    ),
    Reason.UNKNOWN: (
        "No known cause matches the log. Search the engine's issues for the line above.",
        "If it is a bug of the engine, another version of the image often avoids it.",
    ),
}

# In place of the sentences of a reason if the log has this value.
VARIANTS: dict[tuple[Reason, str], tuple[str, ...]] = {
    (Reason.NO_GPU_RUNTIME, "cdi_device"): (
        "`sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` writes the specification that is missing.",
        "`nvidia-ctk cdi list` must then list {cdi_device}; another name is corrected in container.gpus.",
    ),
    (Reason.PERMISSION_DENIED, "daemon"): (
        "`sudo usermod -aG docker $USER`, then log in again: your user may not use the socket of the {daemon} daemon.",
        "`docker ps` must work before you start a container.",
    ),
    (Reason.GPU_MEMORY_IN_USE, "context_gib"): (
        "No other process is in the way: the engine's own CUDA context takes {context_gib} of {total_gib} GiB before it"
        " loads any weight.",
        "Set gpu_memory_utilization to {usable_utilization} or less (it is {gpu_memory_utilization}).",
    ),
    (Reason.GPU_OOM, "loading"): (
        "The GPU ran out of memory in the phase {phase}: {tried} were requested, {free} were free.",
        "The weights do not fit: offload more of them, or take a checkpoint with fewer bits per weight.",
        "Limits of the KV cache and of requests do not help: they count after the weights are loaded.",
    ),
    (Reason.GPU_OOM, "fixed_kv_gib"): (
        "kv_cache_memory_bytes fixes the KV cache at {fixed_kv_gib} GiB, whatever gpu_memory_utilization says:"
        " {tried} more were requested, {free} were free.",
        "The weights take {weights_gib} of {total_gib} GiB: set kv_cache_memory_bytes to {most_kv_bytes} at most"
        " ({most_kv_gib} GiB), less what graphs and activations need.",
        "Or remove it: the engine then sizes the KV cache itself.",
    ),
    (Reason.KILLED, "bus_error"): (
        "A bus error often means that /dev/shm is full (a guess): set `container: {{ipc: host}}` (`--ipc=host`).",
        "Otherwise the memory of the host or of the GPU may be faulty: `sudo dmesg -T | grep -i -e mce -e xid`.",
    ),
    (Reason.KILLED, "error"): (
        "The process crashed ({error}): the frames that it printed show where.",
        "Use another engine version or another backend for what these frames show.",
    ),
}

# For a damaged line, or a line that names its cause without a figure.
NOTHING_MORE = "The line above is all that is known about the failure."


def advise(reason: Reason, values: Mapping[str, ReceiptValue], log: EngineLog) -> tuple[str, ...]:
    """The sentences for `reason` whose values are known."""
    values = {**values, **dict(_derived(reason, values))}
    variant = next((VARIANTS[reason, name] for name in values if (reason, name) in VARIANTS), None)
    sentences = variant or log.advice.get(reason) or SENTENCES.get(reason, ())
    shown = {name: _short(value) for name, value in values.items()}
    known = defaultdict(lambda: "\0", shown | {f"quoted_{name}": shlex.quote(text) for name, text in shown.items()})
    texts = (sentence.format_map(known) for sentence in sentences)
    return tuple(text for text in texts if "\0" not in text) or (NOTHING_MORE,)


# GiB that the CUDA context of an engine takes at its start: 0.51 on an H200 (vLLM 0.32); another process takes more.
_CONTEXT_GIB, _LARGEST_CONTEXT_GIB = 0.51, 1.0
_LOADING = frozenset({Phase.LOADING_WEIGHTS, Phase.OFFLOADING})
_BEFORE_KV_CACHE = _LOADING | {Phase.STARTING}


def _derived(reason: Reason, values: Mapping[str, ReceiptValue]) -> Iterator[tuple[str, ReceiptValue]]:
    """Figures that follow from those of the log."""
    free, total, weights = (_figure(values.get(name)) for name in ("free_gib", "total_gib", "weights_gib"))
    if reason is Reason.GPU_MEMORY_IN_USE and free and total:
        yield "usable_utilization", f"{math.floor(1000 * free / total) / 1000:.3f}"
        if total - free < _LARGEST_CONTEXT_GIB and str(values.get("device", "cuda")).startswith("cuda"):
            yield "context_gib", f"{total - free:.2f}"
    fixed = _figure(values.get("kv_cache_memory_bytes"))
    if reason is Reason.GPU_OOM and values.get("phase") in _LOADING:
        yield "loading", 1
    elif reason is Reason.GPU_OOM and fixed and values.get("phase") not in _BEFORE_KV_CACHE:
        yield "fixed_kv_gib", f"{fixed / 2**30:.2f}"
        if total and weights and (most := math.floor(total - weights - _CONTEXT_GIB)) > 0:
            yield from (("most_kv_gib", most), ("most_kv_bytes", most << 30))
    available = _figure(values.get("available_gib"))
    if reason is Reason.KV_CACHE_NEGATIVE and available is not None and available < 0:
        yield "short_gib", f"{-available:.2f}"


def _figure(value: "ReceiptValue | None") -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def advise_stalled(phase: Phase, silent: float) -> tuple[str, ...]:
    """What to do about a boot without progress for `silent` seconds."""
    return (
        f"No progress in the phase {phase.value} for {silent / 60:.0f} minutes; heartbeats do not count as progress.",
        "Check the disk that holds the weights and the engine's stack (py-spy dump), then start again.",
    )


def advise_tuning() -> tuple[str, ...]:
    """What to do about a boot that is tuning kernels."""
    return (
        "Kernels are being tuned because no saved set fits this launch: 16 to 81 minutes on a Station. Let it finish:"
        " the set is saved once, at the end.",
    )


def _short(value: ReceiptValue) -> str:
    return truncate(str(value), 300)
