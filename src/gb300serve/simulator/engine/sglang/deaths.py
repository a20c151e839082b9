"""A clean stop of SGLang while it serves: what it prints between SIGTERM and its end."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from gb300serve.fit.model import GB300
from gb300serve.simulator.engine.script import EventTimeline, Script, bar, clock, traceback_lines
from gb300serve.simulator.engine.settings import Settings


def stamp(epoch: float) -> str:
    """`[2026-11-30 00:53:20]`, UTC as in its container."""
    return f"[{datetime.fromtimestamp(epoch, UTC):%Y-%m-%d %H:%M:%S}]"


def say(tape: EventTimeline, text: str) -> None:
    """A line of its logger (stderr); what follows a line feed has no stamp."""
    tape.say("stderr", f"{stamp(tape.now)} {text}")


def uvicorn(tape: EventTimeline, text: str, level: str = "INFO") -> None:
    """A line of the HTTP server (stderr)."""
    say(tape, f"{level + ':':<10}{text}")


def traceback(tape: EventTimeline, frames: Sequence[str], error: str) -> None:
    """What Python prints of a process that ends. A frame is `file:line:function:source line`."""
    for line in traceback_lines(frames, error):
        tape.say("stderr", line)


def counted(tape: EventTimeline, title: str, total: int, seconds: float, unit: str = "it") -> None:
    """A bar that rewrites itself, `title` with `{done}` in it where it names the step."""
    begun, pace = tape.at, seconds / max(1, total)
    for done in range(total + 1):
        tape.until(begun + done * pace)
        times = f"{clock(done * pace)}<{clock((total - done) * pace)}, {pace:5.2f}s/{unit}"
        shown = f"{title.format(done=done)} {done * 100 // total:3d}%|{bar(done, total)}| {done}/{total} [{times}]"
        tape.say("stderr", f"\r{shown}", end="\n" if done == total else "")


Ending = Callable[[EventTimeline, Settings], None]

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
# entrypoints/http_server.py, _execute_server_warmup: 120 looks, a second apart.
_WARMUP_SECONDS = 120.0


def refusal(settings: Settings) -> tuple[tuple[str, ...], str] | None:
    """What it refuses of its options before it loads anything: frames and the last line of the traceback."""
    most, asked = settings.checkpoint.max_position_embeddings, settings.max_model_len
    allowed = (settings.surroundings.env or {}).get("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN") in {"1", "true"}
    if not settings.model_is_visible:
        frames = (*_MAIN, "transformers/utils/hub.py:595:cached_files:raise OSError(")
        return frames, (
            "OSError: Repo id must use alphanumeric chars, '-', '_' or '.'. The name cannot start or end with '-' or "
            f"'.' and the maximum length is 96: '{settings.model}'."
        )
    if asked > most and not allowed:
        return (*_CONFIG, "sglang/srt/configs/model_config.py:1314:_derive_context_length:raise ValueError("), (
            f"ValueError: Warning: User-specified context_length ({asked}) is greater than the derived context_length "
            f"({most}). This may lead to incorrect model outputs or CUDA errors. Note that the derived context_length "
            "may differ from max_position_embeddings in the model's config. To allow overriding this maximum, set the "
            "env var SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"
        )
    return None


def scheduler_death(tape: EventTimeline, frames: tuple[str, ...], error: str) -> None:
    """The scheduler tells its exception and asks the server to end everything; exit code 137, as it kills itself."""
    first, *rest = traceback_lines(frames, error)
    say(tape, f"Scheduler hit an exception: {first}")
    for line in [*rest, ""]:
        tape.say("stderr", line)
    tape.wait(0.4)
    say(tape, "Received sigquit from a child process. It usually means the child failed.")
    tape.exit(137)


def out_of_memory(tape: EventTimeline) -> None:
    """The weights do not fit: creating the next expert tensor fails."""
    free = GB300.total_gib % _TENSOR_GIB
    scheduler_death(
        tape,
        (*_LOAD, "sglang/srt/layers/moe/fused_moe_triton/layer.py:402:create_weights:torch.empty("),
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {_TENSOR_GIB:.2f} GiB. GPU 0 has a total "
        f"capacity of {GB300.total_gib:.2f} GiB of which {free:.2f} GiB is free.",
    )


def no_room_for_kv_cache(tape: EventTimeline, fraction: float) -> None:
    """Weights took all of the share."""
    scheduler_death(
        tape,
        _POOL,
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: "
        f"mem_fraction_static={fraction}",
    )


def port_taken(tape: EventTimeline, settings: Settings) -> None:
    """Another server listens on the port. Its own first request still waits for an answer, two minutes long."""
    address = f"('{settings.said.get('host', '127.0.0.1')}', {settings.port})"
    error = f"[Errno 98] error while attempting to bind on address {address}: address already in use"
    uvicorn(tape, error, level="ERROR")
    uvicorn(tape, "Waiting for application shutdown.")
    tape.wait(_WARMUP_SECONDS)
    frames = ("sglang/srt/entrypoints/http_server.py:2373:_execute_server_warmup:assert res.status_code == 200",)
    first, *rest = traceback_lines(frames, "AssertionError: res=<Response [404]>, res.text='Not Found'")
    say(tape, f"Initialization failed. warmup error: {first}")
    for line in [*rest, ""]:
        tape.say("stderr", line)
    say(tape, "kill_process_tree called: parent_pid=1, include_parent=True, pid=1")
    tape.exit(137)


def _scheduler_killed(tape: EventTimeline, _settings: Settings) -> None:
    tape.wait(60.0)
    say(tape, "Subprocess scheduler_0 (pid=214) crashed with exit code -9. Triggering SIGQUIT for cleanup...")
    say(tape, "SIGQUIT received. signum=3, frame=None. It usually means one child failed.")
    tape.exit(137)


def _killed_at_start(tape: EventTimeline, _settings: Settings) -> None:
    traceback(
        tape,
        ("sglang/srt/entrypoints/engine.py:2043:_wait_for_scheduler_ready:raise _scheduler_died_error(j, proc)",),
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a "
        "common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.",
    )
    tape.exit(1)


# Of the rehearsals, those that SGLang has a death for, in its own words.
ENDINGS: Mapping[str, Ending] = {
    "host-oom": _killed_at_start,
    "gpu-oom": lambda tape, _: out_of_memory(tape),
    "port-taken": port_taken,
    "crash-after-ready": _scheduler_killed,
}


def shutdown_script(started: float, at: float) -> Script:
    """From `at` virtual seconds on."""
    tape = EventTimeline(started)
    tape.until(at)
    say(tape, "SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    tape.wait(2.0)
    say(tape, "Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].")
    tape.exit(0)
    return tape.script
