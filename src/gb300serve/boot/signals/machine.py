"""Failures of the machine and of Docker: image, entrypoint, GPU, driver, ports, permissions."""

import re

from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Cause, Rank, cause

_SUPPORTS = r"(?:support|\brequires?\b|\bonly\b|\bmust be run\b)"
# Engines call these while they run.
_NO_COMPILER = r"(?!\S*(?:nvcc|ninja|gcc|g\+\+|ptxas|clang))"

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
    cause(
        Reason.PORT_IN_USE,
        "ddress already in use",
        r"(?:\[Errno 98\]|Error|\bbind:|\bcode: 98\b|NCCL WARN .{0,100}\bBind to\b).*[Aa]ddress already in use",
    ),
    cause(
        Reason.PORT_IN_USE,
        "Address in use",
        r"ZMQError: Address in use(?: \(addr='\w+://(?P<address>.*):(?P<port>\d+))?",
    ),
    cause(
        Reason.PORT_IN_USE,
        "Port ",
        r"Error: Port (?P<port>\d{1,5}) is (?:already in use|unavailable|not available)",
    ),
    cause(Reason.PORT_IN_USE, "but is already running at", r"is already running at \S{1,200}:(?P<port>\d{1,5})\b"),
    cause(Reason.PORT_IN_USE, "Connection in use: ", r"Connection in use: \('(?P<address>[^']*)', (?P<port>\d+)\)"),
    cause(
        Reason.PORT_IN_USE,
        "Ports are not available",
        r"Ports are not available: .*?(?P<address>[\d.]+):(?P<port>\d+) -> .*Only one usage of each socket address",
    ),
    cause(
        Reason.ENTRYPOINT_MISSING,
        "executable file not found",
        # Older daemons escape the quotes; Apptainer names no `exec`.
        r"(?:exec|FATAL): +\\?\"(?P<executable>(?!nvidia-)[^\"\\]*)\\?\": executable file not found",
    ),
    cause(Reason.NO_GPU_RUNTIME, "executable file not found", r"exec: \"(?P<executable>nvidia-[^\"]*)\""),
    cause(
        Reason.ENTRYPOINT_MISSING,
        "no such file or directory",
        r"exec:? \"?(?P<executable>[^\s\":]+)\"?: (?:stat \S+: )?no such file or directory",
    ),
    cause(Reason.ENTRYPOINT_MISSING, "can't open file", r"^\S*python[\d.]*: can't open file '(?P<executable>[^']*)'"),
    # Podman, crun, and the small init programs: catatonit, tini, dumb-init.
    cause(
        Reason.ENTRYPOINT_MISSING,
        "executable file `",
        r"executable file `(?P<executable>[^`]{1,200})`:? not found",
    ),
    cause(Reason.ENTRYPOINT_MISSING, "attempted to invoke a command that was not found"),
    cause(Reason.ENTRYPOINT_MISSING, "ailed to exec pid1: No such file or directory"),
    cause(
        Reason.ENTRYPOINT_MISSING,
        "failed: No such file or directory",
        r"^\[FATAL tini \(\d+\)\] exec (?P<executable>\S+) failed: No such file or directory",
    ),
    cause(
        Reason.ENTRYPOINT_MISSING,
        "[dumb-init]",
        r"^\[dumb-init\] (?P<executable>\S+): No such file or directory",
    ),
    cause(Reason.ENTRYPOINT_MISSING, "o command specified", r"[Nn]o command specified"),
    cause(
        Reason.ENTRYPOINT_MISSING,
        "Error while finding module specification for",
        r"^\S*python[\d.]*: Error while finding module specification for '(?P<executable>[\w.]+)'",
    ),
    cause(Reason.ENTRYPOINT_MISSING, "No module named", r"^\S*python[\d.]*: No module named (?P<executable>[\w.]+)"),
    cause(
        Reason.ENTRYPOINT_MISSING,
        "command not found",
        rf"(?<![\w./-]){_NO_COMPILER}(?P<executable>[\w./-]+): command not found",
    ),
    cause(
        Reason.ENTRYPOINT_MISSING,
        ": not found",
        rf"^\S*sh: \d+: (?:exec: )?{_NO_COMPILER}(?P<executable>\S+): not found",
    ),
    cause(
        Reason.ENTRYPOINT_MISSING,
        "not found",
        rf"\bexec: {_NO_COMPILER}(?P<executable>[\w./-]+): not found$",
    ),
    cause(
        Reason.ENTRYPOINT_MISSING,
        "No such file or directory",
        rf"(?:^(?:/usr/bin/)?env: [^\w/]?|ailed to locate executable ){_NO_COMPILER}(?P<executable>[\w./-]+)[^\w\s]?:"
        r" No such file or directory",
    ),
    cause(Reason.IMAGE_WRONG_ARCHITECTURE, "exec format error", r"exec (?P<executable>\S+): exec format error"),
    cause(Reason.IMAGE_WRONG_ARCHITECTURE, "xec format error", rank=Rank.BROAD),
    cause(
        Reason.IMAGE_WRONG_ARCHITECTURE,
        "no image found in",
        r"no image found in (?:image index|manifest list) for architecture \"?(?P<platform>\w+)",
    ),
    cause(
        Reason.IMAGE_WRONG_ARCHITECTURE,
        "does not match the specified platform",
        r"platform \((?P<image_platform>[^)]*)\),? does not match the specified platform",
    ),
    cause(Reason.IMAGE_WRONG_ARCHITECTURE, "rosetta error: failed to open elf"),
    cause(
        Reason.IMAGE_WRONG_ARCHITECTURE,
        "qemu-",
        r"^qemu-\w{1,20}(?:-static)?: Could not open '/lib\S*/ld-",
    ),
    cause(Reason.IMAGE_WRONG_ARCHITECTURE, "no match for platform in manifest"),
    cause(Reason.IMAGE_WRONG_ARCHITECTURE, "no matching manifest for", r"no matching manifest for (?P<platform>\S+)"),
    Cause(
        Reason.IMAGE_WRONG_ARCHITECTURE,
        "does not match the ",
        re.compile(
            r"platform \((?P<image_platform>[^)]*)\) does not match the (?:detected host|expected) platform"
            r" \((?P<host_platform>[^)]*)\)"
        ),
        Rank.BROAD,
        fatal=False,
    ),
    *(
        cause(Reason.IMAGE_PULL_REFUSED, needle)
        for needle in (
            "toomanyrequests",
            "pull rate limit",
            "unauthorized: authentication required",
            "unauthorized: incorrect username or password",
            "no basic auth credentials",
            "failed to authorize: ",
        )
    ),
    *(
        cause(
            Reason.IMAGE_PULL_REFUSED,
            needle,
            rf"(?:from daemon|[Ff]ailed to pull image|rror response).{{0,400}}?{pattern}",
            Rank.BROAD,
        )
        for needle, pattern in (
            ("denied", r": denied(?:$|: )"),
            ("unauthorized", "unauthorized"),
            ("status", r"status(?: code)?:? 40[13]"),
            ("429 Too Many", "429 Too Many"),
        )
    ),
    cause(
        Reason.CONTAINER_NAME_TAKEN,
        "is already in use by",
        r"name \"/?(?P<container>[^\"]{1,200})\" is already in use by (?:container )?\"?(?P<holder>\w{4,64})?",
    ),
    cause(
        Reason.MOUNT_SOURCE_MISSING,
        "bind source path does not exist",
        r"bind source path does not exist: (?P<path>\S+)",
    ),
    cause(Reason.MOUNT_SOURCE_MISSING, "statfs", r"^Error: statfs (?P<path>.{1,400}?): no such file or directory"),
    cause(
        Reason.MOUNT_SOURCE_MISSING,
        "failed to mount local volume",
        r"failed to mount local volume: mount (?P<path>[^:\s]+):.{0,300}no such file or directory",
    ),
    cause(
        Reason.MOUNT_SOURCE_MISSING,
        "hostPath type check failed",
        r"hostPath type check failed: (?P<path>\S+) is not a",
    ),
    cause(
        Reason.MOUNT_SOURCE_MISSING,
        "Are you trying to mount a directory onto a file",
        r"error mounting \"(?P<path>[^\"]*)\" to rootfs",
    ),
    cause(Reason.IMAGE_MISSING, "No such image", r"No such image: (?P<image>\S+)"),
    cause(Reason.IMAGE_MISSING, "manifest", r"manifest for (?P<image>\S+) not found"),
    cause(Reason.IMAGE_MISSING, "manifest unknown", rank=Rank.BROAD),
    cause(
        Reason.IMAGE_MISSING, "ailed to pull image", r"ailed to pull image \"(?P<image>[^\"]{1,300})\": .*: not found$"
    ),
    cause(Reason.IMAGE_MISSING, "did not resolve to an alias", r"short-name \"(?P<image>[^\"]*)\" did not resolve"),
    cause(Reason.IMAGE_MISSING, "pull access denied", r"pull access denied for (?P<image>[^\s,]+)"),
    cause(
        Reason.IMAGE_MISSING,
        "failed to resolve reference",
        r"failed to resolve reference \"(?P<image>[^\"]*)\".{0,500}?: (?:not found|manifest unknown|404)",
    ),
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
    cause(Reason.NO_GPU_RUNTIME, "CDI device", r"unresolvable CDI devices? (?P<cdi_device>[^\s:]+)"),
    cause(Reason.NO_GPU_RUNTIME, "CDI host device", r"failed to stat CDI host device \"(?P<cdi_device>[^\"]*)"),
    cause(Reason.NO_GPU_RUNTIME, "executing hook", r"error executing hook `\S*nvidia-container-\w+`"),
    cause(Reason.NO_GPU_RUNTIME, "no known GPU vendor found", r"(?P<cdi_device>CDI): no known GPU vendor found"),
    cause(Reason.NO_GPU_RUNTIME, "stat nvidia.com/gpu", r"stat (?P<cdi_device>nvidia\.com/gpu=\S+?): no such file"),
    cause(Reason.NO_GPU_RUNTIME, "Insufficient nvidia.com/gpu"),
    cause(Reason.NO_GPU_RUNTIME, 'no runtime for "nvidia" is configured'),
    cause(Reason.DRIVER_MISMATCH, "river/library version mismatch"),
    cause(Reason.DRIVER_MISMATCH, "NVML/RM version mismatch"),
    cause(Reason.DRIVER_MISMATCH, "unsupported display driver / cuda driver combination"),
    cause(
        Reason.DRIVER_TOO_OLD, "nvidia-container-cli: requirement error", r"unsatisfied condition: (?P<needed>[^,]+)"
    ),
    cause(Reason.DRIVER_TOO_OLD, "driver on your system is too old", r"too old \(found version (?P<found>\d+)"),
    Cause(
        Reason.DRIVER_TOO_OLD,
        "compatibility mode is UNAVAILABLE",
        re.compile(
            r"built for (?P<needed>NVIDIA Driver Release \S+ or later), but version (?P<found>[\d.]+) was detected"
        ),
        fatal=False,
    ),
    cause(Reason.DRIVER_TOO_OLD, "driver version is insufficient"),
    cause(Reason.DRIVER_TOO_OLD, "forward compatibility was attempted on non supported"),
    cause(Reason.DRIVER_TOO_OLD, "compiled with an unsupported toolchain"),
    cause(Reason.NO_GPU_RUNTIME, "nvidia-container-cli:", r"nvidia-container-cli: (?P<error>.*)", Rank.BROAD),
    cause(Reason.NO_GPU_RUNTIME, "Failed to infer device type"),
    cause(Reason.NO_GPU_RUNTIME, "GPUs are available", r"\bNo (?:CUDA|HIP|XPU) GPUs are available"),
    cause(Reason.NO_GPU_RUNTIME, "CUDA is not available", r"^(?:Assertion|Runtime)Error: CUDA is not available"),
    cause(Reason.NO_GPU_RUNTIME, "Found no NVIDIA driver"),
    cause(Reason.NO_GPU_RUNTIME, "Error: CUDA unknown error"),
    cause(Reason.NO_GPU_RUNTIME, "Error 802: system not yet initialized"),
    cause(Reason.NO_GPU_RUNTIME, "CUDA driver initialization failed"),
    cause(Reason.NO_GPU_RUNTIME, "Unexpected error from ", r"Unexpected error from \w+GetDeviceCount\(\)", Rank.BROAD),
    cause(Reason.NO_GPU_RUNTIME, "NVML Shared Library Not Found"),
    cause(Reason.NO_GPU_RUNTIME, "NVMLError_DriverNotLoaded"),
    cause(Reason.NO_GPU_RUNTIME, "ailed to initialize NVML: ", r"initialize NVML: (?:Unknown Error|Insufficient Perm)"),
    cause(Reason.NO_GPU_RUNTIME, "Device string must not be empty"),
    cause(Reason.NO_GPU_RUNTIME, "libnvidia-ml.so.1", r"Error: .*libnvidia-ml\.so\.1: cannot open"),
    cause(Reason.NO_GPU_RUNTIME, "no CUDA-capable device is detected"),
    cause(Reason.NO_GPU_RUNTIME, "libcuda.so.1", r"(?:Error: ).*libcuda\.so\.1"),
    cause(Reason.KERNEL_UNSUPPORTED, "no kernel image is available"),
    cause(Reason.KERNEL_UNSUPPORTED, "invalid device function", r"(?:CUDA|HIP) error: invalid device function"),
    cause(Reason.KERNEL_UNSUPPORTED, "hipErrorNoBinaryForGpu"),
    cause(
        Reason.KERNEL_UNSUPPORTED,
        "not supported in this architecture",
        r"Error: (?P<detail>type \w+ not supported in this architecture)",
    ),
    cause(Reason.KERNEL_UNSUPPORTED, "Triton Error [CUDA]: device kernel image is invalid", rank=Rank.BROAD),
    cause(
        Reason.KERNEL_UNSUPPORTED, "is not defined for option 'gpu-name'", r"'(?P<architecture>sm_\w+)' is not defined"
    ),
    cause(Reason.KERNEL_UNSUPPORTED, "nsupported gpu architecture", r"architecture '(?P<architecture>\w+)'"),
    cause(
        Reason.KERNEL_UNSUPPORTED,
        "ompute capability",
        r"(?:Error: |Value error, )(?P<detail>.{0,400}?[Cc]ompute capability.{0,200})",
        Rank.BROAD,
    ),
    *(
        cause(
            Reason.KERNEL_UNSUPPORTED,
            needle,
            rf"^.{{0,100}}?(?:Error: |Value error, |Exception: )(?P<detail>.{{0,300}}?{pattern}.{{0,200}})",
            Rank.BROAD,
        )
        for needle, pattern in (
            ("SM", rf"(?:{_SUPPORTS}.{{0,200}}?\bSM ?_?\d|\bSM ?_?\d.{{0,200}}?{_SUPPORTS})"),
            ("sm", rf"(?:{_SUPPORTS}.{{0,200}}?(?:\b|_)sm_?\d\d|(?:\b|_)sm_?\d\d.{{0,200}}?{_SUPPORTS})"),
            ("compute_", rf"{_SUPPORTS}.{{0,200}}?\bcompute_\d\d"),
            *(
                (name, rf"\b(?:[Oo]nly|requires?|needs?)\b.{{0,100}}?\b{name}")
                for name in ("Ampere", "Hopper", "Blackwell")
            ),
        )
    ),
    cause(
        Reason.KERNEL_UNSUPPORTED,
        "out of resource: ",
        r"OutOfResources: (?P<detail>out of resource: .{0,200})",
    ),
    Cause(
        Reason.KERNEL_UNSUPPORTED,
        "is not compatible with the current PyTorch",
        re.compile(r"CUDA capability (?P<architecture>\w+) is not compatible with the current PyTorch"),
        Rank.BROAD,
        fatal=False,
    ),
    cause(
        Reason.PERMISSION_DENIED,
        "ermission denied while trying to connect",
        r"ermission denied while trying to connect to the (?P<daemon>Docker|docker|podman|Podman)",
    ),
    cause(
        Reason.PERMISSION_DENIED,
        "ermission denied",
        r"^(?:\w+\.)*\w*(?:Error|Exception): .{0,300}?\[Errno 13\] Permission denied(?:: ['\"](?P<path>[^'\"]*)['\"])?",
    ),
    cause(
        Reason.PERMISSION_DENIED,
        "Read-only file system",
        r"^(?:\w+\.)*\w*(?:Error|Exception): .{0,300}?\[Errno 30\] Read-only file system(?:: ['\"](?P<path>[^'\"]*))?",
    ),
    cause(
        Reason.PERMISSION_DENIED,
        "ermission denied",
        r"(?:[Ee]rror|exec|mkdir|denied while|touch|cannot|: open) ?.*[Pp]ermission denied",
        Rank.BROAD,
    ),
    cause(Reason.PERMISSION_DENIED, "PermissionError", r"^PermissionError: (?P<error>.*)", Rank.BROAD),
    # Programs in Rust: uv, tokenizers, safetensors.
    cause(Reason.PERMISSION_DENIED, "(os error 13)", r"(?P<error>[Pp]ermission denied) \(os error 13\)", Rank.BROAD),
    cause(
        Reason.SHARED_MEMORY_TOO_SMALL,
        "NCCL WARN",
        r"NCCL WARN (?P<error>.{0,100}(?:extend|shared memory segment|posix_fallocate).{0,40}/dev/shm/\S+)",
    ),
    cause(
        Reason.SHARED_MEMORY_TOO_SMALL,
        "o space left on device",
        r"(?:/dev/shm|shared memory|\bshm\b|/torch_\d).{0,300}[Nn]o space left on device",
    ),
    cause(
        Reason.SHARED_MEMORY_TOO_SMALL,
        "o space left on device",
        r"[Nn]o space left on device.{0,300}(?:/dev/shm|shared memory|/torch_\d|'/psm_)",
    ),
    cause(Reason.SHARED_MEMORY_TOO_SMALL, "exceeds memory available in /dev/shm"),
    cause(Reason.SHARED_MEMORY_TOO_SMALL, "insufficient shared memory", r"insufficient shared memory \(shm\)"),
    cause(
        Reason.DISK_FULL,
        "o space left on device",
        r"[Nn]o space left on device(?:: ['\"](?P<path>[^'\"]*))?",
    ),
    cause(Reason.DISK_FULL, "isk quota exceeded", r"[Dd]isk quota exceeded"),
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
        " out of memory",
        r"\b(?:CUDA|HIP|NPU|XPU|MPS|MLU|MUSA|HPU|GCU) out of memory\b\.?"
        r"(?: Tried to allocate (?P<tried>[\d.]+ [KMG]iB)\.?)?"
        r"(?: GPU (?P<gpu>\d+) has a total capacity of (?P<total_gib>[\d.]+) GiB of which (?P<free>[\d.]+ [KMG]iB))?",
    ),
    cause(Reason.HOST_OOM_KILLED, "ray.exceptions.OutOfMemoryError"),
    cause(
        Reason.HOST_OOM_KILLED,
        "Memory on the node",
        r"Memory on the node .{0,300}? was (?P<used>[\d.]+ ?[KMGT]i?B) / (?P<total>[\d.]+ ?[KMGT]i?B)",
        Rank.BROAD,
    ),
    cause(Reason.HOST_OOM_KILLED, "MemoryError", r"^MemoryError(?:$|: )", Rank.BROAD),
    cause(Reason.HOST_OOM_KILLED, "std::bad_alloc", rank=Rank.BROAD),
    cause(Reason.HOST_OOM_KILLED, "unable to mmap", r"unable to mmap (?P<bytes>\d+) bytes .*Cannot allocate memory"),
    cause(Reason.GPU_OOM, "OutOfMemoryError", r"\b(?:cuda\.|torch\.)?OutOfMemoryError(?:: |$)", Rank.BROAD),
    cause(Reason.GPU_OOM, "CUDA driver error: out of memory", rank=Rank.BROAD),
    cause(Reason.GPU_OOM, "CUDA_ERROR_OUT_OF_MEMORY", rank=Rank.BROAD),
    cause(Reason.GPU_OOM, "CUBLAS_STATUS_ALLOC_FAILED", rank=Rank.BROAD),
    cause(Reason.GPU_OOM, "'out of memory'", r"failure (?:2 )?'out of memory'", Rank.BROAD),
    *(
        cause(Reason.GPU_FAULT, needle, rf"(?P<error>{needle}.{{0,100}})")
        for needle in (
            "illegal memory access",
            "illegal instruction was encountered",
            "misaligned address",
            "unspecified launch failure",
            "device-side assert triggered",
            "uncorrectable ECC error",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "CUDA_ERROR_LAUNCH_FAILED",
            "hardware stack error",
            "GPU is lost",
            "has fallen off the bus",
            "Memory access fault by GPU node",
            "HW Exception by GPU node",
        )
    ),
    cause(Reason.GPU_FAULT, "NVRM: Xid", r"NVRM: Xid \((?P<gpu>[^)]*)\): (?P<xid>\d+)"),
    cause(Reason.GPU_OOM, "error: out of memory", r"\b(?:CUDA|HIP|NPU|XPU) error: out of memory", Rank.BROAD),
    cause(Reason.GPU_OOM, "cudaErrorMemoryAllocation", rank=Rank.BROAD),
    cause(
        Reason.HOST_OOM_KILLED,
        "ut of memory: Killed process",
        r"ut of memory: Killed process (?P<pid>\d+) \((?P<process>[^)]*)\)(?:.*?anon-rss:(?P<anonymous_kib>\d+)kB)?"
        r"(?:.*?shmem-rss:(?P<shared_kib>\d+)kB)?",
    ),
    cause(Reason.HOST_OOM_KILLED, "killed by the OOM killer"),
    cause(Reason.HOST_OOM_KILLED, "oom_kill event", r"Detected \d+ oom_kill event"),
    cause(Reason.HOST_OOM_KILLED, "(OOMKilled)"),
    cause(Reason.KILLED, "DUE TO TIME LIMIT", r"(?P<error>CANCELLED AT \S+ DUE TO TIME LIMIT)"),
    cause(Reason.HOST_OOM_KILLED, "Failed with result 'oom-kill'"),
    cause(Reason.HOST_OOM_KILLED, "oom-kill:", r"oom-kill:constraint=(?P<constraint>\w+)", Rank.BROAD),
    cause(Reason.HOST_OOM_KILLED, "invoked oom-killer", r"(?<!\S)(?P<process>\S+) invoked oom-killer", Rank.BROAD),
    cause(
        Reason.HOST_OOM_KILLED, "OOMKilled", r"OOMKilled\"?[=:] ?true|Reason: +OOMKilled|\d/\d +OOMKilled\b", Rank.BROAD
    ),
    cause(Reason.HOST_OOM_KILLED, "DefaultCPUAllocator", r"DefaultCPUAllocator: .*?allocate (?P<bytes>\d+) bytes"),
    cause(Reason.HOST_OOM_KILLED, "Cannot allocate memory", r"\[Errno 12\] Cannot allocate memory", Rank.BROAD),
    # After an exception an engine kills its own processes: these lines only count if nothing else explains the end.
    *(
        cause(Reason.KILLED, needle, pattern, Rank.CLOSING_WORKER)
        for needle, pattern in (
            ("exited with code 13", r"exited with code (?P<exit_code>13[1245679])\b"),
            ("xit ", r"(?:\bexit code|^\s*Exit Code:) +(?P<exit_code>13[1245679])\s*$"),
            (" killed ", r"^\[\d+\] +[+-]? *\d+ killed "),
            ("terminated by signal SIG", r"terminated by signal (?P<signal>SIG(?:KILL|SEGV|ABRT|BUS|ILL))"),
            ("Killed", r"^(?:\S+: line \d+: +\d+ )?Killed(?: .*)?$"),
            ("Main process exited, code=killed", r"code=killed, status=(?P<signal>(?!15/|2/)\d+)/"),
        )
    ),
    *(
        cause(Reason.KILLED, needle, pattern, Rank.BARE)
        for needle, pattern in (
            ("Fatal Python error: ", r"Fatal Python error: (?P<error>Segmentation fault|Aborted|Illegal instruction)"),
            ("Fatal Python error: ", r"Fatal Python error: (?P<bus_error>Bus error)"),
            ("Segfault encountered", None),
            ("egmentation fault", r"^(?:\S+: line \d+: +\d+ )?Segmentation fault\b"),
            ("Aborted", r"^(?:\S+: line \d+: +\d+ )?Aborted(?: +\(core dumped\).*)?$"),
            ("Bus error", r"^(?:\S+: line \d+: +\d+ )?(?P<bus_error>Bus error)\b"),
            ("received at time=", r"^\*\*\* (?P<error>SIG(?:SEGV|ABRT|BUS|ILL)) received at time="),
            ("Caught signal", r"Caught signal (?P<signal>\d+) \(\w+"),
        )
    ),
)
