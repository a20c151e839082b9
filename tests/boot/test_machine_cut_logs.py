"""Logs that end, or begin, within a stack, from several versions of the engines, and logs that only look like it."""

import pytest

from gb300serve.app.diagnose import diagnosed
from gb300serve.boot.reasons import Reason

ENGINE = "(EngineCore_DP0 pid=31) ERROR 11-04 08:44:09 [core.py:708] "
OLD = "ERROR 11-04 08:44:09 engine.py:366] "
SERVER = "ERROR 11-04 08:44:09 [serving_chat.py:661] "
RAY = "(RayWorkerWrapper pid=812, ip=10.0.0.4) ERROR 11-04 08:44:09 worker_base.py:145] "
WORKER = "(VllmWorkerProcess pid=99) ERROR 11-04 08:44:09 multiproc_worker_utils.py:226] "
RANK = "[2026-11-04 08:44:09 TP1] "
BEGIN = "Traceback (most recent call last):"
LOADED = "INFO 11-04 08:44:19 [gpu_model_runner.py:1347] Model loading took 14.9 GiB and 8.7 seconds"
BOOTED = "INFO 11-04 08:44:01 [__init__.py:256] Automatically detected platform cuda."
ASKED = "INFO 11-04 08:44:09 [logger.py:39] Received request chatcmpl-a1: prompt: 'hi', params: SamplingParams(n=1)"
FAULT = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a tota"


def stack(*functions: str, header: str = "", begin: str | None = BEGIN, end: str = "", package: str = "vllm") -> str:
    """`file:function:source` per function; a log that begins within the stack has no `begin`."""
    lines = [] if begin is None else [begin]
    for each in functions:
        file, function, source = each.split(":", 2)
        lines += [f'  File "/opt/env/{package}/{file}.py", line 71, in {function}', f"    {source}"]
    return "\n".join(header + line for line in (*lines, *filter(None, [end])))


def scheduler(*functions: str, end: str = "") -> str:
    return f"{RANK}Scheduler hit an exception: {stack(*functions, end=end, package='sglang/srt')}"


BUSY = ("core:run_engine_core:engine_core.run_busy_loop()", "core:run_busy_loop:self._process_engine_step()")
STEP = ("executor:worker_busy_loop:output = func(*args)", "worker:execute_model:run()")
START = "core:run_engine_core:engine_core = EngineCoreProc(*args, **kwargs)"
REQUEST = "serving_chat:chat_completion_stream_generator:async for res in results:"


def result(text: str) -> tuple[str, str, str | None]:
    diagnosis = diagnosed(text.split("\n")).diagnosis
    return diagnosis.state, diagnosis.phase.value, diagnosis.reason.value if diagnosis.reason else None


@pytest.mark.parametrize(
    ("text", "phase", "reason"),
    [
        (stack("serve:cmd:uvloop.run(run_server(args))", header="(APIServer pid=1) "), "starting", "unknown"),
        (stack("serve:cmd:uvloop.run(run_server(args))") + "\n  Fil", "starting", "unknown"),
        (stack(START, "gpu_worker:load_model:self.model_runner.load()", header=ENGINE), "loading-weights", "unknown"),
        (stack('u:_init_executor:self.collective_rpc("load_model")', header=ENGINE), "loading-weights", "unknown"),
        (stack(START, "core:_init:self.determine_available_memory()", header=ENGINE), "profiling", "unknown"),
        (stack(START, "w:warm_up:self.runner.capture_model()", header=ENGINE), "capturing-graphs", "unknown"),
        (stack(START, "w:get_kv_cache_configs:check(a)", header=ENGINE), "sizing-kv-cache", "unknown"),
        (stack(*BUSY, header=ENGINE), "serving", "unknown"),
        (stack(*BUSY, header=ENGINE, begin=None), "serving", "unknown"),
        (stack(*BUSY, header=ENGINE, begin=None, end="TimeoutError"), "serving", "unknown"),
        (stack("w:execute_model:self.forward()", header=ENGINE, begin=None), "serving", "unknown"),
        (stack("worker:load_model:self.model_runner.load()", header=WORKER), "loading-weights", "unknown"),
        (stack("worker:init_device:torch.cuda.set_device(x)", header=RAY, begin=None), "starting", "unknown"),
        (stack("worker:profile_run:self.execute_model(x)", header=RAY, end=OOM), "profiling", "gpu-oom"),
        (stack("worker:profile_run:self.execute_model(x)", header="[rank0]: ", end=OOM), "profiling", "gpu-oom"),
        (scheduler("scheduler:run_scheduler_process:x", "s:event_loop_normal:self.run_batch()"), "serving", "unknown"),
        (scheduler("runner:init_device_graphs:self.graph_runner = make()"), "capturing-graphs", "unknown"),
        (scheduler("g:capture_one_batch_size:run_once()", end=OOM), "capturing-graphs", "gpu-oom"),
        (scheduler("runner:initialize:self.load_model()") + '\n  File "/sgl', "loading-weights", "unknown"),
        (stack("engine:run_engine_loop:await self.step()"), "serving", "unknown"),
        (f"{LOADED}\n{stack('api_server:<module>:uvloop.run(main())')}", "profiling", "unknown"),
        # The exception itself, or its message, says more than the stack.
        (
            stack("llama:load_weights:p = params[name]", header=OLD, begin=None, end="KeyError: 'layers.3.w.scale'"),
            "loading-weights",
            "weights-mismatch",
        ),
        (
            stack("configuration_auto:__getitem__:raise KeyError(key)", end=" KeyError: 'newmodel'"),
            "starting",
            "model-architecture-unknown",
        ),
        (
            stack('core:check:raise ValueError("No available memory for the cache blocks. "', header=ENGINE),
            "sizing-kv-cache",
            "kv-cache-negative",
        ),
        (
            scheduler("m:init_memory_pool:raise RuntimeError(")
            + '\n        "Not enough memory. Please try to increase --mem-fraction-static."',
            "sizing-kv-cache",
            "kv-cache-negative",
        ),
        (
            f"{ENGINE}ValueError: To serve at least one request with the models's max seq len (202752), (71.16 GiB KV",
            "sizing-kv-cache",
            "kv-cache-too-small",
        ),
        (
            "ValueError: Free memory on device (12.1/23.6 GiB) on startup is less than\n"
            "  desired GPU memory utilization (0.9, 21.3 GiB).",
            "starting",
            "gpu-memory-in-use",
        ),
        (
            "(EngineCore pid=3) ValueError: User-specified max_model_len (131072) is greater than the deriv\n"
            "ed max_model_len (max_position_embeddings=32768)",
            "starting",
            "context-exceeds-model",
        ),
        (
            f"{BOOTED}\nERROR 11-04 08:44:09 [engine.py:448] Bfloat16 is only supported on GPUs with compute capability"
            " of at least 8.0. Your GPU has compute capability 7.0.",
            "starting",
            "kernel-unsupported",
        ),
        (
            f"{OLD}The model's max seq len (8192) is larger than the maximum number of tokens that can be stored in KV"
            " cache (2416).",
            "sizing-kv-cache",
            "kv-cache-too-small",
        ),
        # While the engine serves, an exception that leaves its loop ends it.
        (f"{ASKED}\n{stack(*BUSY, header=ENGINE, end=FAULT)}", "serving", "gpu-fault"),
        (f"{ASKED}\n{stack(*STEP, header=ENGINE, end=FAULT)}", "serving", "gpu-fault"),
        (f"{ASKED}\n{stack(*BUSY, header=ENGINE)}", "serving", "unknown"),
        ("vllm-1 exited with code 137", "starting", "killed"),
    ],
)
def test_a_cut_log_of_a_failure(text: str, phase: str, reason: str) -> None:
    assert result(text) == ("failed", phase, reason)


@pytest.mark.parametrize(
    ("text", "state", "phase"),
    [
        (f"{BOOTED}\n{stack('a:f:x()')}\n{LOADED}", "booting", "profiling"),
        (f"{stack('a:f:x()', end='ValueError: no')}\n{LOADED}", "booting", "profiling"),
        (stack("usage:report:x()", header="WARNING 11-04 08:44:09 [usage.py:1] "), "booting", "starting"),
        (f"Task exception was never retrieved\nfuture: <Task>\n{stack('a:f:x()', end=OOM)}", "booting", "starting"),
        (f"{BOOTED}\n{stack('a:f:x()', begin=None)}\nhello\nthere\nmore", "booting", "starting"),
        ('Thread 0x7f (most recent call first):\n  File "/opt/vllm/a.py", line 12 in wait', "booting", "starting"),
        (f"{BOOTED}\n{ENGINE}Something odd happened", "booting", "starting"),
        (f"{ENGINE}FP8 is not supported on this GPU, compute capability 7.5\n{BOOTED}", "booting", "starting"),
        (ASKED, "ready", "serving"),
        (f"{ASKED}\n{stack(REQUEST, header=SERVER, end=FAULT)}", "ready", "serving"),
        (stack(REQUEST, header=SERVER), "ready", "serving"),
        (stack(REQUEST, header=SERVER, end="ValueError: no such tool"), "ready", "serving"),
        (f"ERROR:    Exception in ASGI application\n{stack('httptools_impl:run_asgi:await app(')}", "ready", "serving"),
        (f"{RANK}Prefill batch. #new-seq: 1, #new-token: 128, #cached-token: 0", "booting", "serving"),
        ("INFO 11-04 08:44:09 model_runner.py:1] Capturing cudagraphs for decoding.", "booting", "capturing-graphs"),
        ("Capturing CUDA graphs (decode, FULL):  46%|####  | 16/35 [00:02<00:02]", "booting", "capturing-graphs"),
        ("INFO 11-04 08:44:09 gpu_executor.py:102] # GPU blocks: 215, # CPU blocks: 9", "booting", "sizing-kv-cache"),
    ],
)
def test_a_log_without_a_failure(text: str, state: str, phase: str) -> None:
    assert result(text) == (state, phase, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Error: crun: executable file `vllm` not found in $PATH: No such file or directory", "entrypoint-missing"),
        ("Error: OCI runtime attempted to invoke a command that was not found", "entrypoint-missing"),
        ("ERROR (catatonit:2): failed to exec pid1: No such file or directory", "entrypoint-missing"),
        ("[FATAL tini (7)] exec vllm failed: No such file or directory", "entrypoint-missing"),
        ("[dumb-init] vllm: No such file or directory", "entrypoint-missing"),
        ("[FATAL tini (7)] exec /usr/bin/python3 failed: Exec format error", "image-wrong-architecture"),
        ('{"msg":"exec container process `/bin/vllm`: Exec format error","level":"error"}', "image-wrong-architecture"),
        ('Error: no image found in image index for architecture "arm64", OS "linux"', "image-wrong-architecture"),
        ("Failed to pull image: no match for platform in manifest: not found", "image-wrong-architecture"),
        ("rosetta error: failed to open elf at /lib64/ld-linux-x86-64.so.2", "image-wrong-architecture"),
        ("qemu-x86_64: Could not open '/lib64/ld-linux-x86-64.so.2': No such file", "image-wrong-architecture"),
        ('Error: short-name "vllm" did not resolve to an alias and no registries are defined', "image-missing"),
        ("RuntimeError: CUDA unknown error - this may be due to the environment", "no-gpu-runtime"),
        ("AssertionError: Torch not compiled with CUDA enabled", "image-broken"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "gpu-oom"),
        ("RuntimeError: Triton Error [CUDA]: device kernel image is invalid", "kernel-unsupported"),
        ("ValueError: max_num_batched_tokens (2048) is smaller than max_model_len (4096).", "bad-argument-value"),
        ("ValueError: Cannot find any of ['bits'] in the model's quantization config.", "quantization-mismatch"),
        ("RuntimeError: Failed to import x.llama because of the following error (look up)", "image-broken"),
        ("error during connect: the docker daemon is not running", "unknown"),
    ],
)
def test_a_message_alone(text: str, reason: str) -> None:
    assert result(text)[::2] == ("failed", reason)


def test_the_evidence_of_a_cut_log_is_its_last_line_of_the_stack_or_the_raise() -> None:
    raising = stack('core:check:raise ValueError("No available memory for the cache blocks. "', header=ENGINE)
    for text, line in ((stack(*BUSY, header=ENGINE), 5), (f'{raising}\n{ENGINE}        "Try this.")', 3)):
        assert [item.line for item in diagnosed(text.split("\n")).diagnosis.evidence] == [line]


def test_the_phase_is_that_of_the_whole_failure() -> None:
    cause = stack("queue:acquire_read:raise TimeoutError", header=ENGINE, begin=None, end="TimeoutError")
    chained = f"{ENGINE}\n{ENGINE}The above exception was the direct cause of the following exception:\n{ENGINE}"
    assert result(f"{cause}\n{chained}\n{stack(*BUSY, header=ENGINE)}") == ("failed", "serving", "unknown")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (ENGINE + "ValueError: Could not detect config format for no config file found.", "model-path-not-visible"),
        (
            ENGINE + "ValueError: Available memory on node 1 (7.5/31.0 GiB) on startup is less than desired CPU memory"
            " utilization (0.9, 27.9 GiB). On the CPU backend",
            "gpu-memory-in-use",
        ),
        ("api_server.py: error: unrecognized arguments:\n--no-such-flag x", "unknown-argument"),
    ],
)
def test_a_last_line_that_says_the_reason_itself(line: str, reason: str) -> None:
    assert result(f"{BOOTED}\n{line}")[2] == reason


@pytest.mark.parametrize("child", ["Process SpawnProcess-1:", "(EngineCore_0 pid=31) Process EngineCore_0:"])
def test_a_child_whose_traceback_is_missing_failed(child: str) -> None:
    diagnosis = diagnosed([LOADED, child]).diagnosis
    assert (diagnosis.state, diagnosis.reason) == ("failed", Reason.UNKNOWN)


def test_a_child_that_was_interrupted_was_stopped() -> None:
    lines = ["Process SpawnProcess-1:", BEGIN, '  File "/opt/env/vllm/a.py", line 7, in run', "KeyboardInterrupt"]
    assert diagnosed([LOADED, *lines]).diagnosis.state == "stopped"


def test_a_traceback_that_lost_its_line_feeds_is_read() -> None:
    stack_line = f'{BEGIN} File "/opt/env/vllm/a.py", line 7, in run raise ValueError(x)'
    assert diagnosed([f"{stack_line} {FAULT}"]).diagnosis.reason is Reason.GPU_FAULT
    other = diagnosed([f"{stack_line} AttributeError: 'NoneType' object has no attribute 'x'"]).diagnosis
    assert (other.state, other.reason) == ("failed", Reason.UNKNOWN)


def test_the_process_of_a_rank_is_read() -> None:
    lines = ["(VllmWorker rank=2 pid=99) ERROR 11-04 08:44:19 [executor.py:5] " + line for line in (BEGIN, FAULT)]
    bar = "Loading safetensors checkpoint shards:  47% Completed | 7/15"
    assert diagnosed([*lines, bar]).diagnosis.reason is Reason.GPU_FAULT
