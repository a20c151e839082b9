import pytest

from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from tests.boot.cases import Case, check, engine, name
from tests.boot.logs import diagnosed
from tests.boot.sglang_logs import ARGUMENTS, CLOSING, WARNED, SglangLog

SIZED = SglangLog().arguments().loaded().sized().lines  # 11 lines


def loading(*error: str) -> list[str]:
    """`error` begins on line 9."""
    log = SglangLog().arguments().said("Init torch distributed begin.", 8)
    return log.said("Load weight begin. avail mem=247.30 GB", 1).said("text").failing(*error).lines


def profiling(*error: str) -> list[str]:
    """`error` begins on line 13."""
    return SglangLog().arguments().loaded().failing(*error).lines


def raised(text: str, *, echoed: bool = True) -> list[str]:
    """The server's own process refuses the configuration: `text` is on the last line, 5 or 6."""
    frames = (
        "Traceback (most recent call last):",
        '  File "/usr/local/lib/python3.12/dist-packages/sglang/launch_server.py", line 72, in <module>',
        "    run_server(server_args)",
        text,
    )
    log = SglangLog().arguments() if echoed else SglangLog().raw(WARNED)
    return log.raw(*frames).lines


def usage(text: str) -> list[str]:
    return [
        WARNED,
        "  warnings.warn(",
        "usage: sglang serve [-h] [--model-path MODEL_PATH] [--tokenizer-path TOKENIZER_PATH]",
        f"sglang serve: error: {text}",
    ]


CASES = [
    Case(
        Reason.UNKNOWN_ARGUMENT,
        usage("unrecognized arguments: --max-model-len 9"),
        4,
        {"arguments": "--max-model-len 9"},
    ),
    Case(
        Reason.UNKNOWN_PARSER,
        usage("argument --tool-call-parser: invalid choice: 'glm99' (choose from 'auto', 'glm47')"),
        4,
        {"argument": "--tool-call-parser", "parser": "glm99"},
    ),
    Case(
        Reason.KV_DTYPE_UNSUPPORTED,
        usage("argument --kv-cache-dtype: invalid choice: 'fp9' (choose from 'auto', 'fp8_e4m3')"),
        4,
        {"argument": "--kv-cache-dtype", "value": "fp9"},
    ),
    Case(
        Reason.BAD_ARGUMENT_VALUE,
        usage("argument --max-running-requests: invalid int value: 'many'"),
        4,
        {"argument": "--max-running-requests", "error": "invalid int value: 'many'"},
    ),
    Case(
        Reason.CONTEXT_EXCEEDS_MODEL,
        raised(
            "ValueError: Warning: User-specified context_length (1048576) is greater than the derived context_length"
            " (4096). This may lead to incorrect model outputs or CUDA errors. To allow overriding this maximum, set"
            " the env var SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
            echoed=False,
        ),
        5,
        {"asked": 1048576, "limit": 4096},
    ),
    Case(
        Reason.QUANTIZATION_MISMATCH,
        raised(
            "ValueError: Quantization method specified in the model config (fp8) does not match the quantization method"
            " specified in the `quantization` argument (modelopt_fp4).",
            echoed=False,
        ),
        5,
        {"checkpoint": "fp8", "asked": "modelopt_fp4"},
    ),
    Case(
        Reason.UNSUPPORTED_ON_ENGINE,
        raised("ValueError: DeepSeek-V4.1 does not support two-batch overlap yet; disable it to serve this model."),
        6,
        {"detail": "DeepSeek-V4.1 does not support two-batch overlap yet; disable it to serve this model."},
    ),
    Case(
        Reason.UNSUPPORTED_ON_ENGINE,
        raised("AssertionError: --dsv4-attn-backend trtllm does not support enable_hisparse."),
        6,
        {"detail": "--dsv4-attn-backend trtllm does not support enable_hisparse."},
    ),
    Case(
        Reason.TOKENIZER_MISSING,
        raised(
            "RuntimeError: Retry with use_fast=False for /model also failed (initial load returned TokenizersBackend):"
            " no file"
        ),
        6,
        {"path": "/model"},
    ),
    Case(
        Reason.NO_GPU_RUNTIME,
        raised(
            "RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) or platform plugin is available.",
            echoed=False,
        ),
        5,
        {"error": "No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) or platform plugin is available."},
    ),
    Case(
        Reason.PORT_IN_USE,
        raised("ValueError: nccl_port at 30234 is not available in 30 seconds. nccl_port at 30234 is not available"),
        6,
        {"what": "nccl_port", "port": 30234, "waited_seconds": 30},
    ),
    Case(
        Reason.PORT_IN_USE,
        SglangLog()
        .ready()
        .said(
            "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30001): address already in use"
        )
        .lines,
        25,
        {"address": "0.0.0.0", "port": 30001},  # what the engine prints
        Phase.SERVING,
    ),
    Case(
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        loading("ValueError: Model architectures ['WingedForCausalLM'] are not supported for now. Supported ones: x"),
        9,
        {"architectures": "WingedForCausalLM"},
        Phase.LOADING_WEIGHTS,
    ),
    Case(
        Reason.MODEL_FILES_INCOMPLETE,
        loading("RuntimeError: Cannot find any model weights with `/model`"),
        9,
        {"path": "/model"},
        Phase.LOADING_WEIGHTS,
    ),
    Case(
        Reason.GPU_OOM,
        loading(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.70 GiB. GPU 0 has a total capacity of"
            " 250.31 GiB of which 1.12 GiB is free."
        ),
        9,
        {"tried": "6.70 GiB", "gpu": 0, "total_gib": 250.31, "free": "1.12 GiB"},
        Phase.LOADING_WEIGHTS,
    ),
    Case(
        Reason.KV_CACHE_NEGATIVE,
        profiling(
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value:"
            " mem_fraction_static=0.85"
        ),
        13,
        {"mem_fraction_static": 0.85},
        Phase.SIZING_KV_CACHE,
    ),
    Case(
        Reason.KV_CACHE_NEGATIVE,
        profiling("RuntimeError: Not enough memory; Please try to increase --mem-fraction-static."),
        13,
        {},
        Phase.SIZING_KV_CACHE,
    ),
    Case(
        Reason.KV_CACHE_NEGATIVE,
        profiling(
            "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.6. Raise"
            " --mem-fraction-static above 0.731 (minimum viable = 1 - available/pre = 0.7309)."
        ),
        13,
        {"mem_fraction_static": 0.6, "suggested_mem_fraction_static": 0.731},
        Phase.SIZING_KV_CACHE,
    ),
    Case(
        Reason.KV_CACHE_TOO_SMALL,
        profiling(
            "RuntimeError: SWA pool cap (65536 tokens, 9.12 GiB) leaves no room for the full KV pool within the"
            " available 8.40 GiB. Reduce --max-running-requests, or increase --mem-fraction-static."
        ),
        13,
        {"swa_tokens": 65536, "needed_gib": 9.12, "available_gib": 8.4},
        Phase.SIZING_KV_CACHE,
    ),
    Case(
        Reason.KV_CACHE_TOO_SMALL,
        profiling(
            "RuntimeError: Hybrid (mamba/linear-attention) state cache is too small to serve any requests."
            " max_mamba_cache_size=2, mamba_ratio=3, resulting max_num_reqs=0. Try: (1) reduce --max-running-requests"
        ),
        13,
        {"max_mamba_cache_size": 2},
        Phase.SIZING_KV_CACHE,
    ),
    Case(
        Reason.KV_DTYPE_UNSUPPORTED,
        profiling("ValueError: Unsupported kv_cache_dtype: nvfp3."),
        13,
        {"dtype": "nvfp3"},
        Phase.PROFILING,
    ),
    Case(
        Reason.GPU_MEMORY_IN_USE,
        profiling(
            "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes."
            " pre_model_load_memory=101.2, local_gpu_memory=61.7, local_gpu_memory * 0.9=55.5"
        ),
        13,
        {"desired_gib": 101.2, "free_gib": 61.7},
        Phase.PROFILING,
    ),
    Case(
        Reason.GPU_OOM,
        SglangLog(list(SIZED), 100)
        .said("Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=0.90 GB", 1)
        .failing(
            "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "Possible solutions:",
        )
        .lines,
        16,
        {"tried": "2.00 GiB"},
        Phase.CAPTURING_GRAPHS,
    ),
    Case(
        Reason.KILLED,
        [
            *SIZED,
            "Traceback (most recent call last):",
            "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL),"
            " a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.",
        ],
        13,
        {"process": "Rank 0 scheduler", "signal": 9},
        Phase.SIZING_KV_CACHE,
    ),
    Case(
        Reason.KILLED,
        SglangLog()
        .ready()
        .said("Subprocess scheduler_0 (pid=214) crashed with exit code -9. Triggering SIGQUIT for cleanup...", 60)
        .said("SIGQUIT received. signum=3, frame=None. It usually means one child failed.")
        .lines,
        25,
        {"process": "scheduler_0", "signal": 9},
        Phase.SERVING,
    ),
    Case(
        Reason.ENGINE_HUNG,
        SglangLog()
        .ready()
        .said("Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)", 400)
        .said("SIGQUIT received. signum=3, frame=None. It usually means one child failed.", 5)
        .lines,
        25,
        {"process": "Scheduler", "timeout_seconds": 300},
        Phase.SERVING,
    ),
    Case(
        Reason.ENGINE_STARTUP_TIMEOUT,
        [
            *SglangLog().ready().lines[:-1],
            "[2026-09-29 21:45:00] Initialization failed. warmup error: Traceback (most recent call last):",
            "requests.exceptions.ReadTimeout: HTTPConnectionPool(host='127.0.0.1', port=30001): Read timed out. (read"
            " timeout=600)",
        ],
        25,
        {"waited_seconds": 600},
        Phase.SERVING,
    ),
    Case(
        Reason.UNKNOWN, profiling("TypeError: unhashable type: 'list'"), 13, {"exception": "TypeError"}, Phase.PROFILING
    ),
]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_what_the_line_says(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_every_failure_has_advice(case: Case) -> None:
    assert diagnosed(case.lines).advice


def test_a_server_that_is_answered_by_the_one_on_its_port_has_failed() -> None:
    log = SglangLog().ready()
    taken = "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30001): address already in use"
    lines = [*log.lines[:-1], f"[{log.stamp()}] {taken}", log.lines[-1]]
    diagnosis = diagnosed(lines)
    assert (diagnosis.state, diagnosis.reason, diagnosis.evidence[0].line) == ("failed", Reason.PORT_IN_USE, 24)


def test_the_closing_line_is_the_evidence_of_last_resort() -> None:
    diagnosis = diagnosed(SglangLog().arguments().said(CLOSING, 5).lines)
    assert (diagnosis.state, diagnosis.reason, diagnosis.evidence[0].line) == ("failed", Reason.UNKNOWN, 3)


@pytest.mark.parametrize(
    "text",
    [
        "Warning: User-specified context_length (9) is greater than the derived context_length (4).",
        "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=True)",
        "ValueError: something that was survived",
        "The memory capacity is unbalanced. Some GPUs may be occupied by other processes.",
        "FileNotFoundError: [Errno 2] No such file or directory: '/model/config.json'",
    ],
)
def test_a_warning_that_has_no_level_is_no_failure(text: str) -> None:
    assert diagnosed(SglangLog().arguments().loaded().said(text).lines).state == "booting"


VLLM_ONLY = [
    "ValueError: No available memory for the cache blocks.",
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': -9}",
    "AssertionError: Error in memory profiling. Initial free memory 9.1 GiB, current free memory 10.2 GiB",
    "ValueError: Model Runner V1 does not yet support: dspark speculative decoding",
]
SGLANG_ONLY = [
    "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
    "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.6.",
    "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9).",
    "ValueError: nccl_port at 30234 is not available in 30 seconds.",
]


@pytest.mark.parametrize("text", VLLM_ONLY)
def test_no_row_of_the_other_engine_explains_sglang(text: str) -> None:
    assert diagnosed(profiling(text)).reason in {Reason.UNKNOWN, Reason.UNSUPPORTED_ON_ENGINE}
    assert "runner" not in diagnosed(profiling(text)).values


@pytest.mark.parametrize("text", SGLANG_ONLY)
def test_no_row_of_sglang_explains_the_other_engine(text: str) -> None:
    assert diagnosed(engine(text)).reason is Reason.UNKNOWN


def test_the_other_engine_reads_no_signal_of_sglang() -> None:
    lines = [*engine("x")[:3], "The server is fired up and ready to roll!"]
    assert diagnosed(lines).state == "booting"


def test_advice_names_the_options_of_sglang() -> None:
    text = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."
    assert diagnosed(profiling(text)).advice == (
        "Weights take all of mem_fraction_static 0.85: no memory is left for the KV cache.",
        "Raise mem_fraction_static; if that leaves too little for the rest, the model does not fit this GPU.",
    )


def test_a_port_without_a_number_is_that_of_the_arguments() -> None:
    lines = [WARNED, '  File "/x/sglang/srt/a.py", line 1, in x', "OSError: [Errno 98] Address already in use"]
    assert diagnosed(lines).values == {"port": 30000}
    assert diagnosed([ARGUMENTS, *lines[1:]]).values == {"port": 30001}
