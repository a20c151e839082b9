"""Why a boot fails: names never change, the list may grow."""

from enum import StrEnum


class Reason(StrEnum):
    """The reason of a diagnosis."""

    UNKNOWN_ARGUMENT = "unknown-argument"
    BAD_ARGUMENT_VALUE = "bad-argument-value"
    INVALID_JSON = "invalid-json"
    JSON_QUOTING_LOST = "json-quoting-lost"
    UNKNOWN_PARSER = "unknown-parser"
    UNSUPPORTED_ON_ENGINE = "unsupported-on-engine"
    MODEL_PATH_NOT_VISIBLE = "model-path-not-visible"
    MODEL_FILES_INCOMPLETE = "model-files-incomplete"
    NEEDS_TRUST_REMOTE_CODE = "needs-trust-remote-code"
    MODEL_ARCHITECTURE_UNKNOWN = "model-architecture-unknown"
    TOKENIZER_MISSING = "tokenizer-missing"
    QUANTIZATION_MISMATCH = "quantization-mismatch"
    CONTEXT_EXCEEDS_MODEL = "context-exceeds-model"
    KV_CACHE_TOO_SMALL = "kv-cache-too-small"
    KV_CACHE_NEGATIVE = "kv-cache-negative"
    KV_DTYPE_UNSUPPORTED = "kv-dtype-unsupported"
    GPU_OOM = "gpu-oom"
    GPU_MEMORY_IN_USE = "gpu-memory-in-use"
    MEMORY_FREED_DURING_PROFILING = "memory-freed-during-profiling"
    HOST_OOM_KILLED = "host-oom-killed"
    OFFLOAD_NOT_APPLIED = "offload-not-applied"
    PORT_IN_USE = "port-in-use"
    PERMISSION_DENIED = "permission-denied"
    IMAGE_WRONG_ARCHITECTURE = "image-wrong-architecture"
    IMAGE_MISSING = "image-missing"
    NO_GPU_RUNTIME = "no-gpu-runtime"
    ENTRYPOINT_MISSING = "entrypoint-missing"
    DRIVER_TOO_OLD = "driver-too-old"
    KERNEL_UNSUPPORTED = "kernel-unsupported"
    WEIGHTS_MISMATCH = "weights-mismatch"
    IMAGE_BROKEN = "image-broken"
    DRIVER_MISMATCH = "driver-mismatch"
    KERNEL_BUILD_FAILED = "kernel-build-failed"
    MODEL_ACCESS_DENIED = "model-access-denied"
    DISK_FULL = "disk-full"
    GPU_FAULT = "gpu-fault"
    IMAGE_PULL_REFUSED = "image-pull-refused"
    CONTAINER_NAME_TAKEN = "container-name-taken"
    MOUNT_SOURCE_MISSING = "mount-source-missing"
    DISTRIBUTED_INIT_FAILED = "distributed-init-failed"
    ENGINE_STARTUP_TIMEOUT = "engine-startup-timeout"
    ENGINE_HUNG = "engine-hung"
    SHARED_MEMORY_TOO_SMALL = "shared-memory-too-small"
    HOOK_NOT_INSTALLED = "hook-not-installed"
    HOOK_ABORTED = "hook-aborted"
    CRASH_LOOP = "crash-loop"
    KILLED = "killed"
    UNKNOWN = "unknown"


# What failed, as the end of a sentence.
PROBLEMS: dict[Reason, str] = {
    Reason.UNKNOWN_ARGUMENT: "the engine does not know an argument",
    Reason.BAD_ARGUMENT_VALUE: "an argument has a value that the engine rejects",
    Reason.INVALID_JSON: "the value of an argument is not valid JSON",
    Reason.JSON_QUOTING_LOST: "the shell removed the quotes from a JSON argument",
    Reason.UNKNOWN_PARSER: "the engine has no parser of this name",
    Reason.UNSUPPORTED_ON_ENGINE: "the engine does not support this combination of model and options",
    Reason.MODEL_PATH_NOT_VISIBLE: "the container does not see the model",
    Reason.MODEL_FILES_INCOMPLETE: "files of the checkpoint are missing or damaged",
    Reason.NEEDS_TRUST_REMOTE_CODE: "the model needs trust_remote_code",
    Reason.MODEL_ARCHITECTURE_UNKNOWN: "the image does not know this model architecture",
    Reason.TOKENIZER_MISSING: "the checkpoint has no usable tokenizer",
    Reason.QUANTIZATION_MISMATCH: "the quantization option does not fit the checkpoint",
    Reason.CONTEXT_EXCEEDS_MODEL: "more context was requested than the model supports",
    Reason.KV_CACHE_TOO_SMALL: "the KV cache is too small for one request of full length",
    Reason.KV_CACHE_NEGATIVE: "the weights leave no GPU memory for the KV cache",
    Reason.KV_DTYPE_UNSUPPORTED: "the type of the KV cache is not supported for this model",
    Reason.GPU_OOM: "the GPU ran out of memory",
    Reason.GPU_MEMORY_IN_USE: "less GPU memory is free than requested",
    Reason.MEMORY_FREED_DURING_PROFILING: "another process freed GPU memory while the engine measured it",
    Reason.HOST_OOM_KILLED: "the host ran out of memory",
    Reason.OFFLOAD_NOT_APPLIED: "no weights were offloaded, so the GPU ran out of memory",
    Reason.PORT_IN_USE: "the port is in use",
    Reason.PERMISSION_DENIED: "access was denied",
    Reason.IMAGE_WRONG_ARCHITECTURE: "the image was built for another processor",
    Reason.IMAGE_MISSING: "the image does not exist here or in the registry",
    Reason.NO_GPU_RUNTIME: "the container gets no GPU",
    Reason.ENTRYPOINT_MISSING: "the image does not contain the program to run",
    Reason.DRIVER_TOO_OLD: "the GPU driver is too old for the image",
    Reason.KERNEL_UNSUPPORTED: "a GPU kernel does not support this GPU",
    Reason.WEIGHTS_MISMATCH: "the weights do not fit the model's architecture",
    Reason.IMAGE_BROKEN: "packages in the image do not fit together",
    Reason.DRIVER_MISMATCH: "the versions of the GPU driver and its libraries differ",
    Reason.KERNEL_BUILD_FAILED: "a GPU kernel could not be compiled",
    Reason.MODEL_ACCESS_DENIED: "the model's repository denied access",
    Reason.DISK_FULL: "a disk is full",
    Reason.GPU_FAULT: "a GPU kernel crashed",
    Reason.IMAGE_PULL_REFUSED: "the registry refused to serve the image",
    Reason.CONTAINER_NAME_TAKEN: "another container has the name",
    Reason.MOUNT_SOURCE_MISSING: "a mounted path does not exist on the host",
    Reason.DISTRIBUTED_INIT_FAILED: "the engine's processes could not connect to each other",
    Reason.ENGINE_STARTUP_TIMEOUT: "the server did not wait long enough for its engine",
    Reason.ENGINE_HUNG: "the engine hung",
    Reason.SHARED_MEMORY_TOO_SMALL: "the shared memory of the container is too small",
    Reason.HOOK_NOT_INSTALLED: "the patch is not installed",
    Reason.HOOK_ABORTED: "the patch stopped the boot",
    Reason.CRASH_LOOP: "it fails again at every start",
    Reason.KILLED: "a process crashed or was killed",
    Reason.UNKNOWN: "the cause is not a known one; see the line below",
}
