"""How vLLM ends: the lines of each death, and of a clean stop."""

from collections.abc import Callable, Mapping
from functools import partial

from gb300serve.boot.phases import Phase
from gb300serve.fit.hardware import GB300
from gb300serve.fit.memory import MemoryPlan
from gb300serve.simulator.engine.script import KILLED, Script, ending
from gb300serve.simulator.engine.settings import Settings
from gb300serve.simulator.engine.vllm.settings import API, CORE, STAMP_FORMAT, VllmTimeline

_ENGINE = (
    "vllm/v1/engine/core.py:1371:run_engine_core:engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)",
    "vllm/v1/engine/core.py:1101:__init__:super().__init__(",
)
_KV = (*_ENGINE, "vllm/v1/engine/core.py:148:__init__:kv_cache_config = self._initialize_kv_caches(vllm_config)")
_KV_CHECK = (*_KV, "vllm/v1/core/kv_cache_utils.py:1030:_check_enough_kv_cache_memory:raise ValueError(")
_LOAD = (
    *_ENGINE,
    "vllm/v1/executor/uniproc_executor.py:58:_init_executor:self.driver_worker.load_model()",
    "vllm/v1/worker/gpu_worker.py:541:load_model:self.model_runner.load_model()",
)
_WEIGHTS = (
    *_LOAD,
    "vllm/model_executor/layers/fused_moe/layer.py:811:create_weights:w13_weight = torch.nn.Parameter(torch.empty(",
)
_DEVICE = (*_ENGINE, "vllm/v1/worker/gpu_worker.py:312:init_device:self.requested_memory = request_memory(")
_SCHEDULER = (
    *_ENGINE,
    "vllm/v1/engine/core.py:171:__init__:self.scheduler = Scheduler(",
    "vllm/v1/spec_decode/dynamic/utils.py:61:build_schedule:raise ValueError(",
)
_PROFILE = (*_KV, "vllm/v1/worker/gpu_worker.py:398:determine_available_memory:self.model_runner.profile_run()")
_WARM = (*_KV, "vllm/v1/worker/gpu_worker.py:652:compile_or_warm_up_model:kernel_warmup(self)")
# Where the engine process is in each phase of a boot.
_AT: dict[str, tuple[str, ...]] = {
    "starting": _DEVICE,
    "loading-weights": _LOAD,
    "offloading": (*_LOAD, "/w/pin_hot_experts_hook.py:240:rehome:cold.copy_(weight, non_blocking=True)"),
    "profiling": _PROFILE,
    "compiling": (*_PROFILE, "vllm/compilation/wrapper.py:212:__call__:return self._compiled_callable(*args)"),
    "sizing-kv-cache": (*_KV, "vllm/v1/worker/gpu_worker.py:561:initialize_from_config:torch.zeros(size)"),
    "tuning-kernels": (*_WARM, "flashinfer/autotuner.py:880:_profile_single_kernel:torch.cuda.synchronize()"),
    "capturing-graphs": (*_WARM, "vllm/v1/worker/gpu_model_runner.py:6102:capture_model:graph.replay()"),
}
_WAIT = (
    "/usr/local/bin/vllm:8:<module>:sys.exit(main())",
    "vllm/entrypoints/cli/main.py:120:main:args.dispatch_function(args)",
    "vllm/v1/engine/utils.py:1431:wait_for_engine_startup:raise RuntimeError(",
)
_LAST_WORDS = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
_DOCS = "https://docs.vllm.ai/en/latest/configuration/conserving_memory/"
_TENSOR_GIB = 4.22


def _engine_death(timeline: VllmTimeline, frames: tuple[str, ...], error: str) -> None:
    """The engine process's ERROR block, its traceback, then the server's closing line; exit code 1."""
    timeline.log(CORE, "core.py:1385", "EngineCore failed to start.", level="ERROR")
    timeline.logged_traceback("core.py:1385", frames, error)
    timeline.wait(0.4)
    timeline.write("stderr", f"({CORE}) Process EngineCore:")
    bootstrap = "/usr/lib/python3.12/multiprocessing/process.py:314:_bootstrap:self.run()"
    timeline.process_traceback(CORE, (bootstrap, frames[-1]), error)
    timeline.wait(1.2)
    timeline.process_traceback(API, _WAIT, _LAST_WORDS)
    timeline.exit(1)


def _gib(value: float) -> str:
    """As vLLM prints it: at most two decimals, no trailing zeros (2.2, 0.65)."""
    return str(round(value, 2))


def kv_cache_too_small(timeline: VllmTimeline, plan: MemoryPlan) -> None:
    """The KV cache check: one request of the longest context does not fit, or no memory is left at all."""
    available = plan.hbm.kv_cache_gib or 0.0
    if available <= 0:
        error = (
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
            f"initializing the engine. See {_DOCS} for more details."
        )
        check = "vllm/v1/core/kv_cache_utils.py:1012:check_enough_kv_cache_memory:raise ValueError("
        _engine_death(timeline, (*_KV, check), error)
        return
    longest = plan.estimated_max_model_len
    estimate = f" Based on the available memory, the estimated maximum model length is {longest}." if longest else ""
    error = (
        f"ValueError: To serve at least one request with the model's max seq len ({plan.max_model_len}), "
        f"({_gib(plan.needed_gib)} GiB KV cache is needed, which is larger than the available KV cache memory "
        f"({_gib(available)} GiB).{estimate} Try increasing `gpu_memory_utilization` (which also controls CPU memory "
        "on the CPU backend) or decreasing `max_model_len` when initializing the engine. "
        f"See {_DOCS} for more details."
    )
    _engine_death(timeline, _KV_CHECK, error)


def gpu_out_of_memory(timeline: VllmTimeline) -> None:
    """The weights do not fit: allocating the next expert tensor fails."""
    _engine_death(timeline, _WEIGHTS, _out_of_memory(_TENSOR_GIB, GB300.total_gib % _TENSOR_GIB))


def cache_out_of_memory(timeline: VllmTimeline, plan: MemoryPlan) -> None:
    """A KV cache of a fixed size does not fit beside weights and graphs."""
    wanted = plan.hbm.kv_cache_gib or 0.0
    free = max(0.0, min(plan.kv_limit_gib or 0.0, wanted - 0.01))
    frame = "vllm/v1/worker/gpu_model_runner.py:7120:_allocate_kv_cache_tensors:torch.zeros(size, dtype=torch.int8"
    _engine_death(timeline, (*_KV, frame), _out_of_memory(round(wanted, 2), free))


def _out_of_memory(wanted: float, free: float) -> str:
    used = GB300.total_gib - free
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {wanted} GiB. GPU 0 has a total capacity "
        f"of {GB300.total_gib:.2f} GiB of which {free:.2f} GiB is free. Including non-PyTorch memory, this process has "
        f"{used - 0.02:.2f} GiB memory in use. Of the allocated memory {used - 0.84:.2f} GiB is allocated by PyTorch, "
        "and 181.24 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
        "setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
        "Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )


def _gpu_memory_in_use(timeline: VllmTimeline, settings: Settings) -> None:
    utilization = settings.memory_request.gpu_memory_utilization
    wanted = utilization * GB300.total_gib
    error = (
        f"ValueError: Free memory on device cuda:0 (41.22/{GB300.total_gib:.2f} GiB) on startup is less than desired "
        f"GPU memory utilization ({utilization}, {wanted:.2f} GiB). Decrease GPU memory utilization or reduce GPU "
        "memory used by other processes."
    )
    _engine_death(timeline, _DEVICE, error)


def schedule_refused(timeline: VllmTimeline, message: str) -> None:
    """The draft schedule is checked only when the scheduler is built."""
    _engine_death(timeline, _SCHEDULER, f"ValueError: {message}")


def hook_aborted(timeline: VllmTimeline, why: str) -> None:
    """The hook stops the boot; `why` names the layer and what it lacks."""
    error = f"RuntimeError: PIN_HOT abort {why}"
    timeline.write("stderr", f"({CORE}) PIN_HOT rehome FAILED {error}")
    _engine_death(timeline, (*_LOAD, "/w/pin_hot_experts_hook.py:212:rehome:raise RuntimeError("), error)


def _gpu_failed(timeline: VllmTimeline, _settings: Settings, *, phase: Phase) -> None:
    """The GPU's memory fails, which can happen in every phase and with any settings."""
    error = "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered"
    if phase == "offloading":
        timeline.write("stderr", "PIN_HOT rehome order n=43 hbm_layers=26 uva_layers=17 strategy=hbm-then-uva")
    if phase == "compiling":
        timeline.log(CORE, "backends.py:712", "Using cache directory: /root/.cache/vllm/torch_compile_cache/0d1e5f")
    if phase in _AT:
        _engine_death(timeline, _AT[phase], error)
        return
    timeline.log(CORE, "core.py:1394", "EngineCore encountered a fatal error.", level="ERROR")
    timeline.logged_traceback("core.py:1394", (_ENGINE[0],), error)
    timeline.log(API, "core_client.py:701", "[shutdown] MPClient: engine core exited unexpectedly", level="ERROR")
    error = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."
    timeline.process_traceback(API, _WAIT[:2], error)
    timeline.exit(1)


def _port_taken(timeline: VllmTimeline, _settings: Settings) -> None:
    frames = (
        "/usr/local/bin/vllm:8:<module>:sys.exit(main())",
        "vllm/entrypoints/cli/main.py:120:main:args.dispatch_function(args)",
        "vllm/entrypoints/cli/serve.py:156:cmd:uvloop.run(run_server(args))",
        "vllm/entrypoints/launchers/api_server/entry.py:176:run_server:"
        "listen_address, sock = setup_server(args, reuse_port=False)",
        "vllm/entrypoints/launchers/launcher.py:332:create_server_socket:sock.bind(addr)",
    )
    timeline.process_traceback(API, frames, "OSError: [Errno 98] Address already in use")
    timeline.exit(1)


def _heartbeats(timeline: VllmTimeline, _settings: Settings) -> None:
    text = (
        "No available shared memory broadcast block found in 60 seconds. This typically happens when some processes "
        "are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization)."
    )
    timeline.repeat(60.0, "stdout", f"({CORE}) INFO {{stamp}} [shm_broadcast.py:801] {text}\n", STAMP_FORMAT)


def _engine_dies(timeline: VllmTimeline, _settings: Settings) -> None:
    timeline.wait(60.0)
    error = "[shutdown] MPClient: engine core exited unexpectedly; starting cleanup"
    timeline.log(API, "core_client.py:701", error, "ERROR")
    frames = (
        "vllm/v1/engine/async_llm.py:849:output_handler:outputs = await engine_core.get_output_async()",
        "vllm/v1/engine/core_client.py:1235:get_output_async:raise self._format_exception(outputs) from None",
    )
    dead = (
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. "
        "See stack trace (above) for the root cause."
    )
    timeline.log(API, "async_llm.py:906", "AsyncLLM output_handler failed.", "ERROR")
    timeline.process_traceback(API, frames, dead)
    timeline.uvicorn("Shutting down")
    timeline.uvicorn("Finished server process [1]")
    # When its engine process dies, the server really exits with 0.
    timeline.exit(0)


_WRITERS: Mapping[str, Callable[[VllmTimeline, Settings], None]] = {
    "stall": _heartbeats,
    "tuning-hangs": _heartbeats,
    "host-oom": lambda timeline, _: timeline.exit(KILLED),
    "gpu-oom": lambda timeline, _: gpu_out_of_memory(timeline),
    "gpu-busy": _gpu_memory_in_use,
    "port-taken": _port_taken,
    "hook-aborted": lambda timeline, _: hook_aborted(timeline, "layer 9 before: MemAvailable 9.68 GiB < 10 GiB"),
    "crash-after-ready": _engine_dies,
    **{f"dies-in-{phase}": partial(_gpu_failed, phase=phase) for phase in Phase},
}
ENDINGS = {name: ending(VllmTimeline, write) for name, write in _WRITERS.items()}


_LINES = (
    (API, "launcher.py:254", "API server: shutdown triggered"),
    (API, "launcher.py:270", "API server: stopping engine client mode=abort timeout=0s"),
    (API, "core_client.py:770", "MPClient: start timeout=0s"),
    (API, "core_client.py:772", "MPClient: stopping engine manager"),
    (API, "utils.py:628", "Process manager: send sigterm to process EngineCore"),
    (CORE, "core.py:1454", "EngineCore: trigger received signal=SIGTERM"),
    (CORE, "core.py:1635", "EngineCore: start mode=abort timeout=0s"),
    (CORE, "core.py:1666", "EngineCore: request processing complete; starting resource teardown"),
    (CORE, "core.py:1499", "EngineCore: exiting busy loop"),
    (API, "core_client.py:774", "MPClient: engine manager stopped"),
    (API, "core_client.py:777", "MPClient: complete"),
    (API, "launcher.py:279", "API server: engine client stopped"),
    (API, "launcher.py:304", "API server: shutting down FastAPI HTTP server"),
)


def shutdown_script(started: float, at: float) -> Script:
    """What a serving engine prints between SIGTERM at `at` and its exit with 0."""
    timeline = VllmTimeline(started)
    timeline.until(at)
    for process, source, text in _LINES:
        timeline.log(process, source, f"[shutdown] {text}")
        timeline.wait(0.02)
    for text in ("Shutting down", "Waiting for application shutdown.", "Application shutdown complete."):
        timeline.uvicorn(text)
    timeline.uvicorn("Finished server process [1]")
    timeline.exit(0)
    return timeline.script
