"""Failures of memory: the GPU's, the host's, shared memory."""

import re
from collections.abc import Mapping

from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Cause, Rank, Value, cause


def _kv_reason(values: Mapping[str, Value]) -> Reason:
    available = values.get("available_gib")
    return Reason.KV_CACHE_NEGATIVE if isinstance(available, float) and available < 0 else Reason.KV_CACHE_TOO_SMALL


CAUSES: tuple[Cause, ...] = (
    Cause(
        Reason.KV_CACHE_TOO_SMALL,
        "To serve at least one request",
        re.compile(
            r"To serve at least one request with the models?'?s? max seq len \((?P<max_model_len>\d+)\), \(?"
            r"(?P<needed_gib>[\d.]+) GiB KV cache is needed, which is larger than the available KV cache memory"
            r" \((?P<available_gib>-?[\d.]+) GiB\)"
            r"(?:.*?estimated maximum model length is (?P<estimated_max_model_len>\d+))?"
        ),
        refine=_kv_reason,
        engine="vllm",
    ),
    cause(
        Reason.KV_CACHE_TOO_SMALL,
        "is larger than the maximum number of tokens that can be stored in KV cache",
        r"max seq len \((?P<max_model_len>\d+)\) is larger than .*?KV cache \((?P<estimated_max_model_len>\d+)\)",
        engine="vllm",
    ),
    cause(Reason.KV_CACHE_NEGATIVE, "No available memory for the cache blocks", engine="vllm"),
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
        Reason.GPU_MEMORY_IN_USE,
        "on startup is less than desired GPU memory utilization",
        r"Free memory on device (?P<device>\S+)? ?\((?P<free_gib>[\d.]+)/(?P<total_gib>[\d.]+) GiB\) on startup is less"
        r" than desired GPU memory utilization \((?P<gpu_memory_utilization>[\d.]+), (?P<desired_gib>[\d.]+) GiB\)",
        engine="vllm",
    ),
    cause(
        Reason.MEMORY_FREED_DURING_PROFILING,
        "Error in memory profiling",
        r"Error in memory profiling\. Initial free memory (?P<initial_gib>[\d.]+)(?: GiB)?,"
        r" current free memory (?P<current_gib>[\d.]+)",
        engine="vllm",
    ),
    cause(Reason.MEMORY_FREED_DURING_PROFILING, "Error in memory profiling", rank=Rank.BROAD, engine="vllm"),
    cause(
        Reason.GPU_OOM,
        "CUDA out of memory occurred when warming up",
        r"CUDA out of memory occurred when warming up (?P<what>.*?) with (?P<requests>\d+) dummy requests",
        engine="vllm",
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
        "Insufficient space in",
        r"Insufficient space in (?P<path>\S+) for shared-memory allocation: (?P<needed_mib>\d+) MiB required,"
        r" (?P<free_mib>\d+) MiB free",
        engine="vllm",
    ),
    cause(
        Reason.SHARED_MEMORY_TOO_SMALL,
        "insufficient shared memory",
        r"insufficient shared memory \(shm\)|No space left on device.*/dev/shm",
    ),
    cause(
        Reason.KILLED,
        "Failed core proc(s)",
        r"Failed core proc\(s\): \{.*?'(?P<process>[\w-]+)': -(?P<signal>9|15)\b",
        Rank.CONSEQUENCE,
        engine="vllm",
    ),
    cause(Reason.KILLED, "exited with code 137", r"exited with code (?P<exit_code>137)", Rank.CONSEQUENCE),
    cause(Reason.KILLED, "Killed", r"^(?:\S+: line \d+: +\d+ )?Killed(?: .*)?$", Rank.CONSEQUENCE),
    cause(Reason.KILLED, "engine core exited unexpectedly", rank=Rank.BARE, engine="vllm"),
    cause(
        Reason.KILLED,
        "died unexpectedly",
        r"(?:proc|process) (?P<process>\S+) died unexpectedly(?: \(exit code: -(?P<signal>\d+)\))?",
        Rank.BARE,
        engine="vllm",
    ),
)
