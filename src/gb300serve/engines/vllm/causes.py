"""Failures that vLLM prints, 0.29 to 0.33."""

import re
from collections.abc import Mapping

from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Cause, Rank, Value, cause


def _kv_reason(values: Mapping[str, Value]) -> Reason:
    available = values.get("available_gib")
    return Reason.KV_CACHE_NEGATIVE if isinstance(available, float) and available < 0 else Reason.KV_CACHE_TOO_SMALL


def _attention_reason(values: Mapping[str, Value]) -> Reason:
    """The one thing that every backend refuses; what only some refuse is not the cause."""
    refused = re.findall(r"\[([^\]]*)\]", str(values.get("refused", "")))
    for text, reason in (
        ("kv_cache_dtype not supported", Reason.KV_DTYPE_UNSUPPORTED),
        ("compute capability not supported", Reason.KERNEL_UNSUPPORTED),
    ):
        if refused and all(text in backend for backend in refused):
            return reason
    return Reason.UNSUPPORTED_ON_ENGINE


_MEMORY: tuple[Cause, ...] = (
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
    ),
    # A negative size has another message; this one may be cut or wrapped.
    cause(
        Reason.KV_CACHE_TOO_SMALL,
        "To serve at least one request",
        r"To serve at least one request with the models?'?s? max seq len \((?P<max_model_len>\d+)\)",
        Rank.BROAD,
    ),
    cause(
        Reason.KV_CACHE_TOO_SMALL,
        "is larger than the maximum number of tokens that can be stored in KV cache",
        r"max seq len \((?P<max_model_len>\d+)\) is larger than .*?KV cache \((?P<estimated_max_model_len>\d+)\)",
    ),
    cause(Reason.KV_CACHE_NEGATIVE, "No available memory for the cache blocks"),
    cause(
        Reason.GPU_MEMORY_IN_USE,
        "on startup is less than desired GPU memory utilization",
        r"Free memory on device (?P<device>\S+)? ?\((?P<free_gib>[\d.]+)/(?P<total_gib>[\d.]+) GiB\) on startup is less"
        r" than desired GPU memory utilization \((?P<gpu_memory_utilization>[\d.]+), (?P<desired_gib>[\d.]+) GiB\)",
    ),
    cause(
        Reason.GPU_MEMORY_IN_USE,
        "on startup is less than desired CPU memory utilization",
        r"Available memory on node (?P<device>\d+) \((?P<free_gib>[\d.]+)/(?P<total_gib>[\d.]+) GiB\) on startup is"
        r" less than desired CPU memory utilization"
        r" \((?P<gpu_memory_utilization>[\d.]+), (?P<desired_gib>[\d.]+) GiB\)",
    ),
    cause(
        Reason.MEMORY_FREED_DURING_PROFILING,
        "Error in memory profiling",
        r"Error in memory profiling\. Initial free memory (?P<initial_gib>[\d.]+)(?: GiB)?,"
        r" current free memory (?P<current_gib>[\d.]+)",
    ),
    cause(Reason.MEMORY_FREED_DURING_PROFILING, "Error in memory profiling", rank=Rank.BROAD),
    cause(
        Reason.GPU_OOM,
        "CUDA out of memory occurred when warming up",
        r"CUDA out of memory occurred when warming up (?P<what>.*?) with (?P<requests>\d+) dummy requests",
    ),
    cause(
        Reason.SHARED_MEMORY_TOO_SMALL,
        "Insufficient space in",
        r"Insufficient space in (?P<path>\S+) for shared-memory allocation: (?P<needed_mib>\d+) MiB required,"
        r" (?P<free_mib>\d+) MiB free",
    ),
    cause(
        Reason.KILLED,
        "Failed core proc(s)",
        r"Failed core proc\(s\): \{.*?'(?P<process>[\w-]+)': -(?P<signal>9|15)\b",
        Rank.BARE,
    ),
    cause(
        Reason.KILLED,
        "died, exit code: -",
        r"Worker (?P<process>\S+) pid \d+ died, exit code: -(?!15\b)(?P<signal>\d+)",
        Rank.BARE,
    ),
    cause(Reason.KILLED, "engine core exited unexpectedly", rank=Rank.BARE),
    cause(
        Reason.KILLED,
        "died unexpectedly",
        r"(?:proc|process) (?P<process>\S+) died unexpectedly(?: \(exit code: -(?P<signal>\d+)\))?",
        Rank.BARE,
    ),
)

_ARGUMENTS: tuple[Cause, ...] = (
    *(
        cause(
            Reason.UNKNOWN_PARSER,
            f"invalid {kind} parser",
            rf"invalid {kind} parser: (?P<parser>\S+?)(?: \(choo?se from \{{ ?(?P<known>[^}}]*?) ?\}}|['\"]|$)",
        )
        for kind in ("tool call", "reasoning")
    ),
    *(
        cause(
            Reason.UNKNOWN_PARSER,
            f"{kind} parser '",
            rf"{kind} parser '(?P<parser>[^']*)' not found(?:\. Available parsers: (?P<known>[^\"]*))?",
        )
        for kind in ("easoning", "ool", "ool call")
    ),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        "--enable-auto-tool-choice requires --tool-call-parser",
        r"(?P<error>--enable-auto-tool-choice requires --tool-call-parser)",
    ),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        "reasoning parser could not locate think",
        r"(?P<error>(?:\b\w+ )?reasoning parser could not locate think.*)",
    ),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        "`model` should be provided as the first positional argument",
        r"(?P<error>`model` should be provided as the first positional argument.*)",
    ),
    cause(Reason.BAD_ARGUMENT_VALUE, "atch-size range", r"(?P<error>(?:The first b|B)atch-size range.*)"),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        "must be divisible by n_predict",
        r"(?P<error>num_speculative_tokens:? ?(?P<value>\d+) must be divisible by n_predict=(?P<divisor>\d+))",
    ),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        "must be greater than or equal to max_num_seqs",
        r"(?P<error>max_num_batched_tokens \((?P<max_num_batched_tokens>\d+)\) must be greater than or equal to"
        r" max_num_seqs \((?P<max_num_seqs>\d+)\))",
    ),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        "is smaller than max_model_len",
        r"Error: (?:.{0,60}, )?(?P<error>max_num_batched_tokens \((?P<max_num_batched_tokens>\d+)\) is smaller than"
        r" max_model_len \((?P<max_model_len>\d+)\))",
    ),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        "cannot be greater than the max_model_len",
        r"\b(?P<argument>\w+) \((?P<value>\d+)\) cannot be greater than the max_model_len \((?P<max_model_len>\d+)\)",
    ),
)

_MODEL: tuple[Cause, ...] = (
    cause(
        Reason.MODEL_FILES_INCOMPLETE,
        "Weight files referenced in index but missing",
        r"Weight files referenced in index but missing: \{?(?P<files>[^}]*)",
    ),
    cause(
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        "has no vLLM implementation",
        r"\b(?P<architectures>\w+) has no vLLM implementation",
    ),
    cause(
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        "Cannot find model module",
        r"Cannot find model module\.? '?(?P<architectures>\w*)",
    ),
    cause(
        Reason.CONTEXT_EXCEEDS_MODEL,
        "is greater than the derived",
        r"User-specified (?:max_model_len|context_length) \((?P<asked>\d+)\) is greater than the derived \w+"
        r" \((?:\w+=)?(?P<limit>\d+)(?:\.0)?",
    ),
)

_ENGINE: tuple[Cause, ...] = (
    cause(
        Reason.ENGINE_STARTUP_TIMEOUT,
        "Timed out waiting for engine",
        r"Timed out waiting for engine(?:.*?Waited (?P<waited_seconds>\d+) ?s)?(?:.*?by (?P<variable>[A-Z][A-Z_]+))?",
    ),
    cause(
        Reason.ENGINE_STARTUP_TIMEOUT,
        "Did not receive response from front-end process within",
        r"within (?P<waited_minutes>\d+) minutes",
    ),
    cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "Model Runner V",
        r"Model Runner (?P<runner>V\d) does not (?:yet )?support:? (?P<feature>.*?)(?: \[type=|$)",
    ),
    cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "has no classic-MTP draft",
        r"(?P<feature>mtp).*Use speculative method '(?P<instead>\w+)'|has no classic-MTP draft",
    ),
    cause(Reason.UNSUPPORTED_ON_ENGINE, "EngramConfig requires a model with"),
    Cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "No valid attention backend found",
        re.compile(
            r"(?P<detail>No valid attention backend found.{0,2000}?(?:kv_cache_dtype=(?P<dtype>\w{1,40}).{0,2000}?)?"
            r"Reasons: \{(?P<refused>.*)|No valid attention backend found.*)"
        ),
        refine=_attention_reason,
    ),
    Cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "is not valid for this configuration",
        re.compile(r"(?P<detail>Selected backend \S+ is not valid for this configuration.{0,20}?(?P<refused>\[.*|$))"),
        refine=_attention_reason,
    ),
)

# Lines that only say that something failed.
_CLOSING: tuple[Cause, ...] = (
    *(
        cause(Reason.UNKNOWN, needle, rank=Rank.CLOSING)
        for needle in (
            "EngineCore failed to start",
            "EngineCore encountered a fatal error",
            "EngineCore encountered an issue",
            "EngineDeadError",
            "Executor failed",
            "got fatal signal from worker processes",
            "Engine process failed to start",
            "Engine background task failed",
            "Background loop has errored",
            "Engine loop is not running",
            "is already dead",
            # The engine's call that its worker, dead, will not answer.
            "RuntimeError: cancelled",
        )
    ),
    # A process that fails prints its cause before the process that waits for it prints this line; a killed process
    # prints nothing. The first line counts.
    cause(Reason.KILLED, "Engine core initialization failed", rank=Rank.CLOSING),
    cause(Reason.UNKNOWN, "WorkerProc failed to start", rank=Rank.CLOSING_WORKER),
    cause(Reason.KILLED, "WorkerProc initialization failed", rank=Rank.BARE),
)

CAUSES = (*_MEMORY, *_ARGUMENTS, *_MODEL, *_ENGINE, *_CLOSING)
