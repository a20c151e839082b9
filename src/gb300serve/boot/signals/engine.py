"""vLLM and FlashInfer: the lines of a boot that goes well, in the order of a boot."""

from gb300serve.boot.phases import Phase
from gb300serve.boot.signals.model import Mark, Signal, signal

STARTING: tuple[Signal, ...] = (
    signal(
        " \u2584\u2584 \u2584\u2588", r".* version (?P<version>\d\S*)", receipt="engine_version", mark=Mark.PREAMBLE
    ),
    signal("With `vllm serve`", mark=Mark.PREAMBLE),
    signal("usage: ", mark=Mark.PREAMBLE),
    signal("Unable to find image", mark=Mark.PREAMBLE),
    signal("non-default args:", mark=Mark.ARGUMENTS),
    signal("Resolved architecture:", r"Resolved architecture: (?P<architecture>\w+)", receipt="architecture"),
    signal("Using max model len", r"Using max model len (?P<max_model_len>\d+)", receipt="max_model_len"),
    signal("Initializing a V1 LLM engine", r".*?\(v(?P<version>[^)]+)\)", receipt="engine_version"),
    signal("Resolved Engram configuration:", r".*cpu_offload=(?P<cpu_offload>\w+)", receipt="engram_config"),
)

LOADING: tuple[Signal, ...] = (
    signal("Starting to load model", phase=Phase.LOADING_WEIGHTS),
    signal("Loading model from scratch", phase=Phase.LOADING_WEIGHTS),
    signal("Loading drafter model", phase=Phase.LOADING_WEIGHTS),
    signal("Loading safetensors", r"Loading \S+ .*shards", phase=Phase.LOADING_WEIGHTS, mark=Mark.BAR),
    signal("Loading pt", r"Loading \S+ .*shards", phase=Phase.LOADING_WEIGHTS, mark=Mark.BAR),
    signal("Multi-thread loading shards", phase=Phase.LOADING_WEIGHTS, mark=Mark.BAR),
    signal("Offloader set to", r"Offloader set to (?P<offloader>\w+)", receipt="offloader"),
    signal(
        "Engram table offloaded",
        r".*?: (?P<rows>\d+) rows x (?P<width>\d+), (?P<gib>[\d.]+) GiB",
        receipt="engram_table",
    ),
    signal("Total CPU offloaded parameters:", r".*?: (?P<gib>[\d.]+)", receipt="offloaded_gib"),
    signal(
        "Filesystem type for checkpoints:",
        r".*?: (?P<filesystem>[^ .]+)\. Checkpoint size: (?P<checkpoint_gib>[\d.]+) GiB\."
        r" Available RAM: (?P<available_ram_gib>[\d.]+) GiB",
        phase=Phase.LOADING_WEIGHTS,
        receipt="checkpoint",
    ),
    signal("Loading weights took", r"Loading weights took (?P<seconds>[\d.]+) s", receipt="weights_seconds"),
    signal("Using DeepSeek's", r"Using DeepSeek's (?P<format>\w+) KV cache format", receipt="kv_cache_format"),
    signal("DSpark draft model loaded:", r".*?: (?P<parameters>\d+) params", receipt="drafter"),
    signal(
        "Model loading took",
        r"Model loading took (?P<gib>[\d.]+) GiB(?: memory)? and (?P<seconds>[\d.]+) seconds",
        phase=Phase.PROFILING,
        receipt="model_loading",
    ),
)

PROFILING: tuple[Signal, ...] = (
    signal("Using cache directory:", phase=Phase.COMPILING),
    signal("Dynamo bytecode transform time:", phase=Phase.COMPILING),
    signal("Directly load", phase=Phase.COMPILING),
    signal("Compiling a graph for", phase=Phase.COMPILING),
    signal("Compiling model again", phase=Phase.COMPILING),
    signal("saved AOT compiled function", phase=Phase.COMPILING),
    signal("torch.compile took", r"torch.compile took (?P<seconds>[\d.]+) s", receipt="compile_seconds"),
    signal(
        "Initial profiling/warmup run took",
        r".*?took (?P<seconds>[\d.]+) s",
        phase=Phase.PROFILING,
        receipt="profiling_seconds",
    ),
    signal("Explicitly set (", r".* GiB for KV cache", phase=Phase.SIZING_KV_CACHE),  # on a CPU nothing is measured
    signal(
        "Available KV cache memory:",
        r".*?: (?P<gib>-?[\d.]+) GiB",
        phase=Phase.SIZING_KV_CACHE,
        receipt="kv_cache_gib",
    ),
    signal(
        "GPU KV cache size:",
        r".*?: (?P<tokens>[\d,]+) tokens(?:, Maximum concurrency for (?P<max_model_len>[\d,]+) tokens per request:"
        r" (?P<concurrency>[\d.]+)x)?",
        phase=Phase.SIZING_KV_CACHE,
        receipt="kv_cache_tokens",
        mark=Mark.SIZED,
    ),
    signal(
        "CPU KV cache size:",
        r".*?: (?P<tokens>[\d,]+) tokens(?:, Maximum concurrency for (?P<max_model_len>[\d,]+) tokens per request:"
        r" (?P<concurrency>[\d.]+)x)?",
        phase=Phase.SIZING_KV_CACHE,
        receipt="kv_cache_tokens",
        mark=Mark.SIZED,
    ),
    signal(
        "Maximum concurrency for",
        r".*?for (?P<max_model_len>[\d,]+) tokens per request: (?P<concurrency>[\d.]+)x",
        receipt="concurrency",
    ),
    signal("Auto-fit max_model_len:", r".*?from (?P<asked>\d+) to (?P<max_model_len>\d+)", receipt="auto_fit"),
)

TUNING: tuple[Signal, ...] = (
    signal(
        "Using FlashInfer autotune cache file:",
        r".*?: (?P<path>\S*?/(?P<identity>[0-9a-f]{16,})/[^/\s]+?|\S+?)\.?(?: Pass|\s|$)",
        phase=Phase.TUNING_KERNELS,
        receipt="tuning_cache",
    ),
    signal(
        "Using FlashInfer managed autotune cache",
        r".*?\(root=(?P<path>[^)]+)\)",
        phase=Phase.TUNING_KERNELS,
        receipt="tuning_cache",
    ),
    signal("Running FlashInfer", phase=Phase.TUNING_KERNELS),
    signal(
        "[Autotuner]: Loaded",
        r".*?Loaded (?P<configs>\d+) configs from (?P<path>\S+)",
        phase=Phase.TUNING_KERNELS,
        receipt="tuning_loaded",
        mark=Mark.TUNING_LOADED,
    ),
    signal("[Autotuner]: Autotuning process starts", phase=Phase.TUNING_KERNELS, mark=Mark.TUNING_STARTS),
    signal("[AutoTuner]: Tuning ", phase=Phase.TUNING_KERNELS, mark=Mark.TUNING_BAR),
    signal("[Autotuner]: Autotuning process ends", mark=Mark.TUNING_ENDS),
    signal(
        "[Autotuner]: Saved",
        r".*?Saved (?P<configs>\d+) configs to (?P<path>\S+)(?: \((?P<new>\d+) new, (?P<previous>\d+) from)?",
        receipt="tuning_saved",
    ),
    signal(
        "[Autotuner]: Cache file",
        r".*?Cache file (?P<path>\S+) was created in a different environment \((?P<difference>.*?)\)\. Ignoring",
        receipt="tuning_cache_ignored",
    ),
)

GRAPHS: tuple[Signal, ...] = (
    signal("Capturing ", r"Capturing .*?(?:graph|batches)", mark=Mark.GRAPH_BAR),
    signal(
        "Graph capturing finished",
        r".*? in (?P<seconds>[\d.]+) secs?, took (?P<gib>-?[\d.]+) GiB",
        receipt="graph_capture",
        mark=Mark.GRAPHS_CAPTURED,
    ),
    signal("init engine", r".*? took (?P<seconds>[\d.]+) s", phase=Phase.SERVING, receipt="engine_init_seconds"),
)

SERVING: tuple[Signal, ...] = (
    signal("Supported tasks:", phase=Phase.SERVING),
    signal("Starting vLLM ", r"Starting vLLM .*? on (?P<url>\S+)", phase=Phase.SERVING, receipt="server"),
    signal("Started server process", phase=Phase.SERVING),
    signal("Application startup complete.", phase=Phase.SERVING, mark=Mark.COMPLETE),
    signal("[shutdown] API server: shutdown triggered", mark=Mark.STOP),
    signal("[shutdown] EngineCore: trigger received signal=SIG", mark=Mark.STOP),
    signal("[shutdown] MPClient: engine core exited unexpectedly", mark=Mark.DIED),
    signal("Worker proc", r".*died unexpectedly", mark=Mark.DIED),
    signal("Engine core proc", r".*died unexpectedly", mark=Mark.DIED),
    signal("Shutting down", mark=Mark.STOP),
    signal("Received SIGTERM", mark=Mark.STOP),
    signal("Received SIGINT", mark=Mark.STOP),
    signal("Received signal", r"Received signal (?:SIGTERM|SIGINT|15|2)\b", mark=Mark.STOP),
    signal("KeyboardInterrupt", mark=Mark.STOP),
    signal("No available shared memory broadcast block", mark=Mark.HEARTBEAT),
)

SIGNALS = (*STARTING, *LOADING, *PROFILING, *TUNING, *GRAPHS, *SERVING)
