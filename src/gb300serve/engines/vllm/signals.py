"""The lines of a good boot of vLLM, in their order."""

from gb300serve.boot.phases import Phase
from gb300serve.boot.signals.model import LineMark, Signal, signal

_STARTING: tuple[Signal, ...] = (
    signal(
        " \u2584\u2584 \u2584\u2588", r".* version (?P<version>\d\S*)", receipt="engine_version", mark=LineMark.PREAMBLE
    ),
    signal("With `vllm serve`", mark=LineMark.PREAMBLE),
    signal("usage: vllm", mark=LineMark.PREAMBLE),
    signal("non-default args:", mark=LineMark.ARGUMENTS),
    signal("Resolved architecture:", r"Resolved architecture: (?P<architecture>\w+)", receipt="architecture"),
    signal("Using max model len", r"Using max model len (?P<max_model_len>\d+)", receipt="max_model_len"),
    signal("args: Namespace(", mark=LineMark.ARGUMENTS),  # until 0.8
    signal("vLLM API server version", r".*? version (?P<version>\d\S*)", receipt="engine_version"),
    signal("Initializing a", r"Initializing an? (?:V\d )?LLM engine \(v(?P<version>[^)]+)\)", receipt="engine_version"),
    signal("Resolved Engram configuration:", r".*cpu_offload=(?P<cpu_offload>\w+)", receipt="engram_config"),
)

_LOADING: tuple[Signal, ...] = (
    signal("Starting to load model", phase=Phase.LOADING_WEIGHTS),
    signal("Loading model from scratch", phase=Phase.LOADING_WEIGHTS),
    signal("Loading drafter model", phase=Phase.LOADING_WEIGHTS),
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
    signal("Loading model weights took", phase=Phase.PROFILING),  # until 0.7
    signal(
        "Model loading took",
        r"Model loading took (?P<gib>[\d.]+) GiB(?: memory)? and (?P<seconds>[\d.]+) seconds",
        phase=Phase.PROFILING,
        receipt="model_loading",
    ),
)

_PROFILING: tuple[Signal, ...] = (
    signal("Warming up model for the compilation", phase=Phase.COMPILING),  # on a CPU
    signal("Starting torch.compile", phase=Phase.COMPILING),
    signal("Using cache directory:", phase=Phase.COMPILING),
    signal("Dynamo bytecode transform time:", phase=Phase.COMPILING),
    signal("Directly load", phase=Phase.COMPILING),
    signal("Cache the graph of compile range", phase=Phase.COMPILING),
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
    # The engine of 0.8 and before.
    signal("Starting profile run", phase=Phase.PROFILING),
    signal("Memory profiling takes", phase=Phase.SIZING_KV_CACHE),
    signal("# GPU blocks:", phase=Phase.SIZING_KV_CACHE, mark=LineMark.SIZED),
    signal("# cuda blocks:", phase=Phase.SIZING_KV_CACHE, mark=LineMark.SIZED),
    signal(
        "Free memory on device (",
        r"Free memory on device \((?P<free_gib>[\d.]+)/(?P<total_gib>[\d.]+) GiB\) on startup\. Desired",
        receipt="gpu_memory",
    ),
    signal("Explicitly set (", r".* GiB for KV cache", phase=Phase.SIZING_KV_CACHE),  # on a CPU nothing is measured
    signal(
        "Available KV cache memory:", r".*?: (?P<gib>-?[\d.]+) GiB", phase=Phase.SIZING_KV_CACHE, receipt="kv_cache_gib"
    ),
    signal(
        "GPU KV cache size:",
        r".*?: (?P<tokens>[\d,]+) tokens(?:, Maximum concurrency for (?P<max_model_len>[\d,]+) tokens per request:"
        r" (?P<concurrency>[\d.]+)x)?",
        phase=Phase.SIZING_KV_CACHE,
        receipt="kv_cache_tokens",
        mark=LineMark.SIZED,
    ),
    signal(
        "CPU KV cache size:",
        r".*?: (?P<tokens>[\d,]+) tokens(?:, Maximum concurrency for (?P<max_model_len>[\d,]+) tokens per request:"
        r" (?P<concurrency>[\d.]+)x)?",
        phase=Phase.SIZING_KV_CACHE,
        receipt="kv_cache_tokens",
        mark=LineMark.SIZED,
    ),
    signal(
        "Maximum concurrency for",
        r".*?for (?P<max_model_len>[\d,]+) tokens per request: (?P<concurrency>[\d.]+)x",
        receipt="concurrency",
    ),
    signal("Auto-fit max_model_len:", r".*?from (?P<asked>\d+) to (?P<max_model_len>\d+)", receipt="auto_fit"),
)

_TUNING: tuple[Signal, ...] = (
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
)

_GRAPHS: tuple[Signal, ...] = (
    signal("Capturing the model for CUDA graphs", phase=Phase.CAPTURING_GRAPHS),  # until 0.8
    signal("Capturing cudagraphs for decoding", phase=Phase.CAPTURING_GRAPHS),
    signal("Capturing ", r"Capturing (?!the model|cudagraphs for dec).*?(?:graph|batches)", mark=LineMark.GRAPH_BAR),
    signal(
        "Graph capturing finished",
        r".*? in (?P<seconds>[\d.]+) secs?, took (?P<gib>-?[\d.]+) GiB",
        receipt="graph_capture",
        mark=LineMark.GRAPHS_CAPTURED,
    ),
    signal("init engine", r".*? took (?P<seconds>[\d.]+) s", phase=Phase.SERVING, receipt="engine_init_seconds"),
)

_SERVING: tuple[Signal, ...] = (
    signal("Supported tasks:", phase=Phase.SERVING),
    signal("Received request ", r"Received request \S+: prompt", phase=Phase.SERVING, mark=LineMark.COMPLETE),
    signal("Added request ", r"Added request \S+\.$", phase=Phase.SERVING, mark=LineMark.COMPLETE),
    signal("Available routes are:", phase=Phase.SERVING),
    signal("Dumping scheduler output for model execution", phase=Phase.SERVING),
    signal("Starting vLLM ", r"Starting vLLM .*? on (?P<url>\S+)", phase=Phase.SERVING, receipt="server"),
    signal("[shutdown] API server: shutdown triggered", mark=LineMark.STOP),
    signal("[shutdown] EngineCore: trigger received signal=SIG", mark=LineMark.STOP),
    signal("[shutdown] MPClient: engine core exited unexpectedly", mark=LineMark.DIED),
    signal("Worker proc", r".*died unexpectedly", mark=LineMark.DIED),
    signal("Engine core proc", r".*died unexpectedly", mark=LineMark.DIED),
    signal("No available shared memory broadcast block", mark=LineMark.HEARTBEAT),
    signal("No available block found", mark=LineMark.HEARTBEAT),  # until 0.6
)

# uvicorn's line: the other engines' servers print it too, before they are ready.
COMMON_SIGNALS = (
    signal("Application startup complete.", phase=Phase.SERVING, mark=LineMark.COMPLETE),
    signal("Uvicorn running on", phase=Phase.SERVING, mark=LineMark.COMPLETE),
)

SIGNALS = (*_STARTING, *_LOADING, *_PROFILING, *_TUNING, *_GRAPHS, *_SERVING)
