"""Failures of memory: the GPU's, the host's, shared memory."""

from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Cause, Rank, cause

CAUSES: tuple[Cause, ...] = (
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
