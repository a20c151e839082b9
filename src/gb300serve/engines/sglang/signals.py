"""The lines of a good boot of SGLang, 0.5.20 and 0.5.23. File names are relative to `sglang/srt`."""

from gb300serve.boot.phases import Phase
from gb300serve.boot.signals.model import LineMark, Signal, signal

_STARTING: tuple[Signal, ...] = (
    # server_args.py, prepare_server_args: argparse's own lines, and sglang/launch_server.py's warning before them.
    signal("usage: sglang serve", mark=LineMark.PREAMBLE),
    # entrypoints/engine.py, _launch_subprocesses.
    signal("server_args=", mark=LineMark.ARGUMENTS),
    # distributed/bootstrap.py.
    signal("Init torch distributed begin."),
    signal("Init torch distributed ends."),
)

_LOADING: tuple[Signal, ...] = (
    # model_executor/model_runner.py, load_model; a draft model loads after the one that it drafts for.
    signal("Load weight begin.", phase=Phase.LOADING_WEIGHTS),
    # utils/offloader.py: OffloaderV2 chooses modules while they are created and moves them once they are loaded.
    signal("[offloader] offload module_index="),
    signal("[offloader] post_init", phase=Phase.OFFLOADING),
    signal(
        "Load weight end.",
        r".*?(?:elapsed=(?P<seconds>[\d.]+) s,.*?)?mem usage=(?P<gib>[\d.]+) GB",
        phase=Phase.PROFILING,
        receipt="model_loading",
    ),
)

_SIZING: tuple[Signal, ...] = (
    # mem_cache/memory_pool.py, _finalize_allocation_log; a draft model has a pool of its own.
    signal(
        "KV Cache is allocated.",
        r".*?#tokens: (?P<tokens>\d+)(?:, K size: (?P<k_gib>[\d.]+) GB, V size: (?P<v_gib>[\d.]+) GB"
        r"|, KV size: (?P<gib>[\d.]+) GB)?",
        phase=Phase.SIZING_KV_CACHE,
        receipt="kv_cache_tokens",
        mark=LineMark.SIZED,
    ),
    signal("KV Cache VA upper bound.", phase=Phase.SIZING_KV_CACHE, mark=LineMark.SIZED),
    signal("Mamba Cache is allocated.", phase=Phase.SIZING_KV_CACHE),
    # mem_cache/kv_cache_configurator.py.
    signal("Memory pool end.", phase=Phase.SIZING_KV_CACHE, mark=LineMark.SIZED),
    # layers/deep_gemm_wrapper/compile_utils.py.
    signal("Entering DeepGEMM JIT Pre-Compile session.", phase=Phase.COMPILING),
    signal("DeepGEMM warmup", phase=Phase.COMPILING, mark=LineMark.BAR),
)

_TUNING: tuple[Signal, ...] = (
    # model_executor/runner/flashinfer_autotune.py.
    signal(
        "Running FlashInfer autotune with cache:",
        r".*?: (?P<path>\S+)",
        phase=Phase.TUNING_KERNELS,
        receipt="tuning_cache",
        mark=LineMark.TUNING_STARTS,
    ),
    signal("Running FlashInfer autotune (", phase=Phase.TUNING_KERNELS, mark=LineMark.TUNING_STARTS),
    signal("FlashInfer autotune completed.", mark=LineMark.TUNING_ENDS),
)

_GRAPHS: tuple[Signal, ...] = (
    # model_executor/model_runner_components/cuda_graph_setup.py and speculative/*; the first form is that of 2025.
    signal("Capture ", r"Capture .*\bbegin\.", phase=Phase.CAPTURING_GRAPHS),
    signal(
        "Capture ",
        r"Capture .*\bend\..*?elapsed[:=] ?(?P<seconds>[\d.]+) s[,.](?: mem usage=(?P<gib>-?[\d.]+) GB)?",
        receipt="graph_capture",
    ),
    # model_executor/runner/decode_cuda_graph_runner.py and prefill_cuda_graph_runner.py: bars.
    signal("Capturing batches (", phase=Phase.CAPTURING_GRAPHS, mark=LineMark.BAR),
    signal("Capturing prefill shape (", phase=Phase.CAPTURING_GRAPHS, mark=LineMark.BAR),
    # model_executor/model_runner_components/kv_pool_runtime.py: the pool is given what the graphs left.
    signal(
        "Post-capture KV sizing: KV cache allocated.",
        r".*?#tokens: (?P<tokens>\d+)",
        phase=Phase.SIZING_KV_CACHE,
        receipt="kv_cache_tokens",
    ),
)

_SERVING: tuple[Signal, ...] = (
    # managers/scheduler.py: the scheduler is complete; the server starts and sends itself a first request.
    signal(
        "max_total_num_tokens=",
        r"max_total_num_tokens=(?P<tokens>\d+), .*?max_running_requests=(?P<max_running_requests>\d+), "
        r"context_len=(?P<context_len>\d+)(?:, available_gpu_mem=(?P<available_gib>[\d.]+) GB)?",
        phase=Phase.SERVING,
        receipt="token_pool",
    ),
    # entrypoints/engine.py, _set_startup_time: the same figures are in /server_info.
    signal(
        "Engine startup timings (s):",
        r".*?load_weight=(?P<load_weight>[\d.]+), kv_cache_allocation=(?P<kv_cache_allocation>[\d.]+), "
        r"scheduler_e2e=(?P<scheduler_e2e>[\d.]+), cuda_graph=\{.*?\}, tokenizer_e2e=(?P<tokenizer_e2e>[\d.]+)",
        phase=Phase.SERVING,
        receipt="startup_timings",
    ),
    # managers/tp_worker.py, 0.5.23: it serves, and refuses what is longer.
    signal(
        "KV pool holds",
        r"KV pool holds (?P<tokens>\d+) tokens, fewer than --context-length (?P<context_len>\d+)\.",
        receipt="pool_below_context",
    ),
    # entrypoints/http_server.py, after the answer to its own first request.
    signal("The server is fired up and ready to roll!", phase=Phase.SERVING, mark=LineMark.COMPLETE),
    signal("Prefill batch", phase=Phase.SERVING),
    # managers/scheduler.py until 0.4: it waits for the answer of a batch.
    signal("Watchdog timeout (self.watchdog_timeout=", phase=Phase.SERVING),
    # managers/tokenizer_manager.py.
    signal("SIGTERM received", mark=LineMark.STOP),
    signal("Gracefully exiting", mark=LineMark.STOP),
)

# uvicorn starts before the first request is answered; the other engines' servers print the same line.
COMMON_SIGNALS = (
    signal("Application startup complete.", phase=Phase.SERVING),
    signal("Uvicorn running on", phase=Phase.SERVING),
)

SIGNALS = (*_STARTING, *_LOADING, *_SIZING, *_TUNING, *_GRAPHS, *_SERVING)
