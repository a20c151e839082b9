"""Failures of the machine and of Docker: image, entrypoint, GPU, driver, ports, permissions."""

import re

from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Cause, Rank, cause

CAUSES: tuple[Cause, ...] = (
    cause(Reason.PORT_IN_USE, "ddress already in use", r"bind on address \('(?P<address>[^']*)', (?P<port>\d+)"),
    cause(
        Reason.PORT_IN_USE,
        "address already in use",
        r"(?:listen tcp\d? |for |bind host port (?:for )?)(?P<address>\[[^\]]*\]|[\d.]*):(?P<port>\d+)\b"
        r".*address already in use",
    ),
    cause(
        Reason.PORT_IN_USE,
        "port is already allocated",
        r"Bind for (?P<address>\S*):(?P<port>\d+) failed: port is already allocated",
    ),
    cause(Reason.PORT_IN_USE, "EADDRINUSE", r"port: (?P<port>\d+).*EADDRINUSE"),
    cause(Reason.PORT_IN_USE, "ddress already in use", r"(?:\[Errno 98\]|Error).*[Aa]ddress already in use"),
    cause(
        Reason.ENTRYPOINT_MISSING,
        "executable file not found",
        r"exec: \"(?P<executable>(?!nvidia-)[^\"]*)\": executable file not found",
    ),
    cause(Reason.NO_GPU_RUNTIME, "executable file not found", r"exec: \"(?P<executable>nvidia-[^\"]*)\""),
    cause(
        Reason.ENTRYPOINT_MISSING,
        "no such file or directory",
        r"exec:? \"?(?P<executable>[^\s\":]+)\"?: (?:stat \S+: )?no such file or directory",
    ),
    cause(Reason.ENTRYPOINT_MISSING, "o command specified", r"[Nn]o command specified"),
    cause(Reason.ENTRYPOINT_MISSING, "No module named", r"^\S*python[\d.]*: No module named (?P<executable>[\w.]+)"),
    cause(Reason.ENTRYPOINT_MISSING, "command not found", r"(?<![\w./-])(?P<executable>[\w./-]+): command not found"),
    cause(Reason.ENTRYPOINT_MISSING, ": not found", r"^\S*sh: \d+: (?:exec: )?(?P<executable>\S+): not found"),
    cause(Reason.IMAGE_WRONG_ARCHITECTURE, "exec format error", r"exec (?P<executable>\S+): exec format error"),
    cause(Reason.IMAGE_WRONG_ARCHITECTURE, "exec format error", rank=Rank.BROAD),
    cause(Reason.IMAGE_WRONG_ARCHITECTURE, "no matching manifest for", r"no matching manifest for (?P<platform>\S+)"),
    Cause(
        Reason.IMAGE_WRONG_ARCHITECTURE,
        "does not match the detected host platform",
        re.compile(
            r"platform \((?P<image_platform>[^)]*)\) does not match the detected host platform"
            r" \((?P<host_platform>[^)]*)\)"
        ),
        Rank.BROAD,
        fatal=False,
    ),
    cause(Reason.IMAGE_MISSING, "No such image", r"No such image: (?P<image>\S+)"),
    cause(Reason.IMAGE_MISSING, "manifest", r"manifest for (?P<image>\S+) not found"),
    cause(Reason.IMAGE_MISSING, "manifest unknown", rank=Rank.BROAD),
    cause(Reason.IMAGE_MISSING, "pull access denied", r"pull access denied for (?P<image>[^\s,]+)"),
    cause(Reason.IMAGE_MISSING, "failed to resolve reference", r"failed to resolve reference \"(?P<image>[^\"]*)"),
    cause(Reason.IMAGE_MISSING, "toomanyrequests", rank=Rank.BROAD),
    cause(
        Reason.NO_GPU_RUNTIME,
        "could not select device driver",
        r"could not select device driver \"(?P<driver>[^\"]*)\"",
    ),
    cause(
        Reason.NO_GPU_RUNTIME,
        "untime",
        r"[Uu]nknown (?:or invalid )?runtime(?: specified| name:)? (?P<runtime>[\w.-]*nvidia[\w.-]*)",
    ),
    cause(Reason.NO_GPU_RUNTIME, "CDI device", r"unresolvable CDI devices? (?P<device>\S+)"),
    cause(
        Reason.DRIVER_TOO_OLD, "nvidia-container-cli: requirement error", r"unsatisfied condition: (?P<needed>[^,]+)"
    ),
    cause(Reason.DRIVER_TOO_OLD, "driver on your system is too old", r"too old \(found version (?P<found>\d+)"),
    cause(Reason.DRIVER_TOO_OLD, "driver version is insufficient"),
    cause(Reason.DRIVER_TOO_OLD, "unsupported display driver"),
    cause(Reason.DRIVER_TOO_OLD, "forward compatibility was attempted on non supported"),
    cause(Reason.DRIVER_TOO_OLD, "compiled with an unsupported toolchain"),
    cause(Reason.NO_GPU_RUNTIME, "nvidia-container-cli:", r"nvidia-container-cli: (?P<error>.*)", Rank.BROAD),
    cause(Reason.NO_GPU_RUNTIME, "Failed to infer device type"),
    cause(Reason.NO_GPU_RUNTIME, "No CUDA GPUs are available"),
    cause(Reason.NO_GPU_RUNTIME, "Found no NVIDIA driver"),
    cause(Reason.NO_GPU_RUNTIME, "no CUDA-capable device is detected"),
    cause(Reason.NO_GPU_RUNTIME, "libcuda.so.1", r"(?:Error: ).*libcuda\.so\.1"),
    cause(Reason.KERNEL_UNSUPPORTED, "no kernel image is available"),
    cause(
        Reason.KERNEL_UNSUPPORTED, "is not defined for option 'gpu-name'", r"'(?P<architecture>sm_\w+)' is not defined"
    ),
    cause(Reason.KERNEL_UNSUPPORTED, "nsupported gpu architecture", r"architecture '(?P<architecture>\w+)'"),
    cause(Reason.KERNEL_UNSUPPORTED, "Ninja build failed", rank=Rank.BROAD),
    cause(Reason.KERNEL_UNSUPPORTED, "compute capability", r"Error: .*compute capability.*", Rank.BROAD),
    Cause(
        Reason.KERNEL_UNSUPPORTED,
        "is not compatible with the current PyTorch",
        re.compile(r"CUDA capability (?P<architecture>\w+) is not compatible with the current PyTorch"),
        Rank.BROAD,
        fatal=False,
    ),
    cause(
        Reason.PERMISSION_DENIED,
        "ermission denied",
        r"PermissionError: \[Errno 13\] Permission denied: ['\"](?P<path>[^'\"]*)['\"]",
    ),
    cause(
        Reason.PERMISSION_DENIED, "Read-only file system", r"\[Errno 30\] Read-only file system: ['\"](?P<path>[^'\"]*)"
    ),
    cause(
        Reason.PERMISSION_DENIED,
        "ermission denied",
        r"(?:Error|error|exec|mkdir|denied while|touch|cannot).*[Pp]ermission denied",
        Rank.BROAD,
    ),
    cause(Reason.PERMISSION_DENIED, "ermission denied while trying to connect"),
    cause(Reason.PERMISSION_DENIED, "PermissionError", r"PermissionError: (?P<error>.*)", Rank.BROAD),
)


MEMORY_CAUSES: tuple[Cause, ...] = (
    cause(
        Reason.KV_DTYPE_UNSUPPORTED,
        "kv_cache_dtype",
        r"(?:Error: |error: |Value error, ).*?[Ii]nvalid kv_cache_dtype:? ?'?(?P<dtype>\w*)",
    ),
    cause(
        Reason.KV_DTYPE_UNSUPPORTED,
        "kv_cache_dtype",
        r"(?:Error: |Value error, ).{0,200}?(?:kv_cache_dtype=(?P<dtype>\w{1,40}).{0,200}?)?"
        r"kv_cache_dtype(?:[ =:]{1,4}'?(?P<asked>\w{1,40})'?)? (?:is )?(?:not supported|unsupported|not valid)",
    ),
    cause(
        Reason.KV_DTYPE_UNSUPPORTED,
        "KV cache",
        r"(?:Error: |Value error, ).{0,200}?"
        r"(?P<dtype>(?:nv|mx)?fp\d\w{0,40}|int\d|bfloat16|auto)[\w' -]{0,60} KV cache\b.{0,200}?"
        r"(?:not supported|unsupported|not compatible|does not support)",
    ),
    cause(
        Reason.KV_DTYPE_UNSUPPORTED,
        "does not support",
        r"(?:Error: |Value error, ).{0,200}?does not support .{0,200}?"
        r"(?P<dtype>(?:nv|mx)?fp\d\w{0,40}) (?:KV|kv)[ _-]cache",
    ),
    cause(
        Reason.GPU_OOM,
        "CUDA out of memory",
        r"CUDA out of memory\.?(?: Tried to allocate (?P<tried>[\d.]+ [KMG]iB)\.)?"
        r"(?: GPU (?P<gpu>\d+) has a total capacity of (?P<total_gib>[\d.]+) GiB of which (?P<free>[\d.]+ [KMG]iB))?",
    ),
    cause(Reason.GPU_OOM, "OutOfMemoryError", rank=Rank.BROAD),
    cause(Reason.GPU_OOM, "CUDA error: out of memory", rank=Rank.BROAD),
    cause(Reason.GPU_OOM, "cudaErrorMemoryAllocation", rank=Rank.BROAD),
    cause(
        Reason.HOST_OOM_KILLED,
        "ut of memory: Killed process",
        r"ut of memory: Killed process (?P<pid>\d+) \((?P<process>[^)]*)\)(?:.*?anon-rss:(?P<anonymous_kib>\d+)kB)?"
        r"(?:.*?shmem-rss:(?P<shared_kib>\d+)kB)?",
    ),
    cause(Reason.HOST_OOM_KILLED, "oom-kill:", r"oom-kill:constraint=(?P<constraint>\w+)", Rank.BROAD),
    cause(Reason.HOST_OOM_KILLED, "invoked oom-killer", r"(?<!\S)(?P<process>\S+) invoked oom-killer", Rank.BROAD),
    cause(Reason.HOST_OOM_KILLED, "OOMKilled", r"OOMKilled\"?[=:] ?true", Rank.BROAD),
    cause(Reason.HOST_OOM_KILLED, "DefaultCPUAllocator", r"DefaultCPUAllocator: .*?allocate (?P<bytes>\d+) bytes"),
    cause(Reason.HOST_OOM_KILLED, "Cannot allocate memory", r"\[Errno 12\] Cannot allocate memory", Rank.BROAD),
    cause(
        Reason.SHARED_MEMORY_TOO_SMALL,
        "insufficient shared memory",
        r"insufficient shared memory \(shm\)|No space left on device.*/dev/shm",
    ),
    cause(Reason.KILLED, "exited with code 137", r"exited with code (?P<exit_code>137)", Rank.CONSEQUENCE),
    cause(Reason.KILLED, "Killed", r"^(?:\S+: line \d+: +\d+ )?Killed(?: .*)?$", Rank.CONSEQUENCE),
)
