"""Failures that SGLang prints, 0.5.20 and 0.5.23. File names are relative to `sglang/srt`."""

from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Cause, Rank, cause

_MEMORY: tuple[Cause, ...] = (
    # model_executor/pool_configurator.py; the second spelling is that of 2025.
    cause(
        Reason.KV_CACHE_NEGATIVE,
        "Please try to increase --mem-fraction-static",
        r"Not enough memory[.;] Please try to increase --mem-fraction-static"
        r"(?:.*?mem_fraction_static=(?P<mem_fraction_static>[\d.]+))?",
    ),
    # mem_cache/kv_cache_configurator.py.
    cause(
        Reason.KV_CACHE_NEGATIVE,
        "Loaded weights leave no GPU memory for the KV cache",
        r"under --mem-fraction-static=(?P<mem_fraction_static>[\d.]+)\."
        r" Raise --mem-fraction-static above (?P<suggested_mem_fraction_static>\d\.\d+)",
    ),
    cause(
        Reason.KV_CACHE_TOO_SMALL,
        "state cache is too small to serve any requests",
        r"max_mamba_cache_size=(?P<max_mamba_cache_size>\d+)",
    ),
    # model_executor/pool_configurator.py.
    cause(
        Reason.KV_CACHE_TOO_SMALL,
        "leaves no room for the full KV pool",
        r"SWA pool cap \((?P<swa_tokens>\d+) tokens, (?P<needed_gib>[\d.]+) GiB\)"
        r".*?within the available (?P<available_gib>-?[\d.]+) GiB",
    ),
    # distributed/bootstrap.py.
    cause(
        Reason.GPU_MEMORY_IN_USE,
        "The memory capacity is unbalanced",
        r"RuntimeError: The memory capacity is unbalanced.*?pre_model_load_memory=(?P<desired_gib>[\d.]+)"
        r", local_gpu_memory=(?P<free_gib>[\d.]+)",
    ),
    cause(Reason.GPU_MEMORY_IN_USE, "The memory capacity is unbalanced", r"Error: The memory capacity", Rank.BROAD),
    # mem_cache/kv_cache_dtype.py.
    cause(
        Reason.KV_DTYPE_UNSUPPORTED, "Unsupported kv_cache_dtype:", r"Error: Unsupported kv_cache_dtype: (?P<dtype>\w+)"
    ),
)

_MODEL: tuple[Cause, ...] = (
    # models/registry.py and model_loader/utils.py.
    cause(
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        "nsupported architectures",
        r"Error: Unsupported architectures:? \[?'?(?P<architectures>\w+)",
    ),
    cause(
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        "no SG",
        r"(?P<architectures>\w+) has no SG[Ll]ang implementation",
    ),
    # configs/model_config.py; as a bare warning it is no failure.
    cause(
        Reason.CONTEXT_EXCEEDS_MODEL,
        "is greater than the derived context_length",
        r"Error: Warning: (?:User-specified|Target model's) context_length \((?P<asked>\d+)\)"
        r" is greater than the derived context_length \((?P<limit>\d+)\)",
    ),
    # utils/hf_transformers/tokenizer.py.
    cause(Reason.TOKENIZER_MISSING, "Failed to load the tokenizer."),
    cause(Reason.TOKENIZER_MISSING, "Retry with use_fast=False for", r"Retry with use_fast=False for (?P<path>\S+)"),
    # utils/common.py, get_device.
    cause(Reason.NO_GPU_RUNTIME, "No accelerator (CUDA, XPU, HPU, NPU", r"Error: (?P<error>No accelerator .*)"),
)

_SERVER: tuple[Cause, ...] = (
    # server_args.py, PortArgs.init_new with utils/network.py, wait_port_available.
    cause(
        Reason.PORT_IN_USE,
        "is not available in",
        r"Error: (?P<what>\w+) at (?P<port>\d+) is not available in (?P<waited_seconds>\d+) seconds",
    ),
    # utils/watchdog.py; the soft watchdog only logs.
    cause(
        Reason.ENGINE_HUNG,
        "watchdog timeout (self.watchdog_timeout=",
        r"^(?P<process>\w+) watchdog timeout \(self\.watchdog_timeout=(?P<timeout_seconds>[\d.]+), self\.soft=False\)",
    ),
    # entrypoints/http_server.py: the server's first request to itself.
    cause(
        Reason.ENGINE_STARTUP_TIMEOUT,
        "Read timed out. (read timeout=",
        r"\bHTTPConnectionPool\(.{0,200}Read timed out\. \(read timeout=(?P<waited_seconds>\d+)\)",
    ),
    # entrypoints/engine.py, _scheduler_died_error, and utils/watchdog.py, SubprocessWatchdog.
    cause(
        Reason.KILLED,
        "scheduler died during initialization",
        r"(?P<process>Rank \d+ scheduler) died during initialization \(exit code: -(?!15\b)(?P<signal>\d+)\)",
        Rank.BARE,
    ),
    cause(
        Reason.KILLED,
        "Triggering SIGQUIT for cleanup",
        r"Subprocess (?P<process>\w+) \(pid=\d+\) crashed with exit code -(?!15\b)(?P<signal>\d+)\.",
        Rank.BARE,
    ),
)

# Lines that only say that something failed: the traceback behind one, or an earlier line of another process, names
# the cause.
_CLOSING: tuple[Cause, ...] = tuple(
    cause(Reason.UNKNOWN, needle, pattern, Rank.CLOSING)
    for needle, pattern in (
        ("hit an exception:", r"^(?:\w+) hit an exception: "),
        ("Received sigquit from a child proc", None),
        ("It usually means one child failed", r"^SIGQUIT received\."),
        ("Initialization failed.", r"Initialization failed\. (?:warmup error|Please see the error messages above)"),
        ("scheduler died during initialization", None),
        ("Triggering SIGQUIT for cleanup", None),
        ("Capture cuda graph failed:", r"Exception: Capture cuda graph failed: "),
    )
)

CAUSES = (*_MEMORY, *_MODEL, *_SERVER, *_CLOSING)
