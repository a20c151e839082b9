"""How SGLang ends: the lines of each death, and of a clean stop."""

from collections.abc import Callable, Mapping

from gb300serve.fit.hardware import GB300
from gb300serve.simulator.engine.script import Script, ending
from gb300serve.simulator.engine.settings import Settings
from gb300serve.simulator.engine.sglang.settings import SglangTimeline

_MAIN = (
    "<frozen runpy>:198:_run_module_as_main:",
    "sglang/launch_server.py:83:<module>:run_server(server_args)",
    "sglang/launch_server.py:29:run_server:server_args.resolve_once()",
)
_CONFIG = (
    *_MAIN,
    "sglang/srt/arg_groups/model_override_base.py:213:model_config_of:ModelConfig.from_server_args(server_args)",
)
_SCHEDULER = (
    "sglang/srt/managers/scheduler.py:6360:run_scheduler_process:scheduler = Scheduler(server_args, port_args)",
    "sglang/srt/managers/tp_worker.py:302:__init__:self._init_model_runner()",
)
_LOAD = (*_SCHEDULER, "sglang/srt/model_executor/model_runner.py:1314:load_model:load_model_with_memory_saver(")
_POOL = (*_SCHEDULER, "sglang/srt/model_executor/pool_configurator.py:100:__post_init__:raise RuntimeError(msg)")
_TENSOR_GIB = 6.7
# entrypoints/http_server.py, _execute_server_warmup: 120 attempts, one second apart.
_WARMUP_SECONDS = 120.0


def refusal(settings: Settings) -> tuple[tuple[str, ...], str] | None:
    """The first option that it refuses before it loads anything: frames and last line of the traceback; or None."""
    most, length = settings.checkpoint.max_position_embeddings, settings.max_model_len
    is_allowed = (settings.environment.env or {}).get("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN") in {"1", "true"}
    if not settings.model_is_visible:
        frames = (*_MAIN, "transformers/utils/hub.py:595:cached_files:raise OSError(")
        return frames, (
            "OSError: Repo id must use alphanumeric chars, '-', '_' or '.'. The name cannot start or end with '-' or "
            f"'.' and the maximum length is 96: '{settings.model}'."
        )
    if length > most and not is_allowed:
        return (*_CONFIG, "sglang/srt/configs/model_config.py:1314:_derive_context_length:raise ValueError("), (
            f"ValueError: Warning: User-specified context_length ({length}) is greater than the derived context_length "
            f"({most}). This may lead to incorrect model outputs or CUDA errors. Note that the derived context_length "
            "may differ from max_position_embeddings in the model's config. To allow overriding this maximum, set the "
            "env var SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"
        )
    return None


def _scheduler_death(timeline: SglangTimeline, frames: tuple[str, ...], error: str) -> None:
    """The scheduler logs its exception and makes the server kill itself; exit code 137."""
    timeline.logged_traceback("Scheduler hit an exception", frames, error)
    timeline.wait(0.4)
    timeline.log("Received sigquit from a child process. It usually means the child failed.")
    timeline.exit(137)


def out_of_memory(timeline: SglangTimeline) -> None:
    """The weights do not fit: allocating the next expert tensor fails."""
    free = GB300.total_gib % _TENSOR_GIB
    _scheduler_death(
        timeline,
        (*_LOAD, "sglang/srt/layers/moe/fused_moe_triton/layer.py:402:create_weights:torch.empty("),
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {_TENSOR_GIB:.2f} GiB. GPU 0 has a total "
        f"capacity of {GB300.total_gib:.2f} GiB of which {free:.2f} GiB is free.",
    )


def no_room_for_kv_cache(timeline: SglangTimeline, fraction: float) -> None:
    """The weights use up the whole share."""
    hint = "Please try to increase --mem-fraction-static. Current value: mem_fraction_static"
    _scheduler_death(timeline, _POOL, f"RuntimeError: Not enough memory. {hint}={fraction}")


def _port_taken(timeline: SglangTimeline, settings: Settings) -> None:
    # Its own first request still goes to the other server, for two minutes.
    address = f"('{settings.native.get('host', '127.0.0.1')}', {settings.port})"
    conflict = f"[Errno 98] error while attempting to bind on address {address}: address already in use"
    timeline.uvicorn(conflict, level="ERROR")
    timeline.uvicorn("Waiting for application shutdown.")
    timeline.wait(_WARMUP_SECONDS)
    frames = ("sglang/srt/entrypoints/http_server.py:2373:_execute_server_warmup:assert res.status_code == 200",)
    error = "AssertionError: res=<Response [404]>, res.text='Not Found'"
    timeline.logged_traceback("Initialization failed. warmup error", frames, error)
    timeline.log("kill_process_tree called: parent_pid=1, include_parent=True, pid=1")
    timeline.exit(137)


def _scheduler_killed(timeline: SglangTimeline, _settings: Settings) -> None:
    timeline.wait(60.0)
    timeline.log("Subprocess scheduler_0 (pid=214) crashed with exit code -9. Triggering SIGQUIT for cleanup...")
    timeline.log("SIGQUIT received. signum=3, frame=None. It usually means one child failed.")
    timeline.exit(137)


def _killed_at_start(timeline: SglangTimeline, _settings: Settings) -> None:
    timeline.traceback(
        ("sglang/srt/entrypoints/engine.py:2043:_wait_for_scheduler_ready:raise _scheduler_died_error(j, proc)",),
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a "
        "common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.",
    )
    timeline.exit(1)


_WRITERS: Mapping[str, Callable[[SglangTimeline, Settings], None]] = {
    "host-oom": _killed_at_start,
    "gpu-oom": lambda timeline, _: out_of_memory(timeline),
    "port-taken": _port_taken,
    "crash-after-ready": _scheduler_killed,
}
ENDINGS = {name: ending(SglangTimeline, write) for name, write in _WRITERS.items()}
# The last two change only what the boot starts from.
REHEARSED = (*ENDINGS, "slow-disk", "patch-differs", "wedged")


def shutdown_script(started: float, at: float) -> Script:
    """What a serving engine prints between SIGTERM at `at` and its exit with 0."""
    timeline = SglangTimeline(started)
    timeline.until(at)
    timeline.log("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    timeline.wait(2.0)
    timeline.log("Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].")
    timeline.exit(0)
    return timeline.script
