import pytest

from gb300serve.boot.diagnosis import Diagnosis, Evidence, State, exit_code
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from tests.boot.cases import argparse, engine
from tests.boot.logs import Log, diagnosed


@pytest.mark.parametrize(
    ("state", "reason", "code"),
    [
        ("ready", None, 0),
        ("ready", Reason.HOOK_NOT_INSTALLED, 9),
        ("booting", None, 0),
        ("tuning", None, 0),
        ("stopped", None, 0),
        ("stalled", None, 8),
        ("failed", Reason.UNKNOWN, 8),
    ],
)
def test_the_exit_code_follows_from_the_state(state: State, reason: Reason | None, code: int) -> None:
    assert exit_code(Diagnosis(state, Phase.SERVING, reason)) == code


def test_the_object_has_the_keys_of_its_schema() -> None:
    diagnosis = Diagnosis(
        state="failed",
        phase=Phase.SIZING_KV_CACHE,
        reason=Reason.KV_CACHE_TOO_SMALL,
        values={"needed_gib": 2.5},
        evidence=(Evidence(412, "ValueError: …"),),
        advice=("max_model_len 123264 would fit.",),
        phases=((Phase.STARTING, 21.00049), (Phase.LOADING_WEIGHTS, 3.0)),
        boots=2,
        summary="It failed.",
    )
    assert diagnosis.as_json() == {
        "schema": "gb300serve.diagnosis/1",
        "state": "failed",
        "phase": "sizing-kv-cache",
        "reason": "kv-cache-too-small",
        "values": {"needed_gib": 2.5},
        "evidence": [{"line": 412, "text": "ValueError: …"}],
        "advice": ["max_model_len 123264 would fit."],
        "phases": [{"name": "starting", "seconds": 21.0}, {"name": "loading-weights", "seconds": 3.0}],
        "boots": 2,
        "summary": "It failed.",
    }


BIND = "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 31007): address already in use"
DISK = "ZeroDivisionError: the disk said no"


@pytest.mark.parametrize(
    ("lines", "boots"),
    [
        (argparse("unrecognized arguments: --x") * 4, 4),
        (["vllm: error: unrecognized arguments: --x"] * 3, 3),
        (["exec /bin/serve: exec format error"] * 5, 5),
        (engine(DISK) * 3, 3),
        ([*Log().boot().lines, BIND] * 3, 3),
        ([*Log().boot().lines, *engine(DISK) * 3], 4),
        ([*engine(DISK) * 3, *Log().arguments().lines], 4),
    ],
)
def test_three_boots_that_do_not_serve_are_a_loop(lines: list[str], boots: int) -> None:
    diagnosis = diagnosed(lines)
    assert (diagnosis.state, diagnosis.reason, diagnosis.boots) == ("failed", Reason.CRASH_LOOP, boots)


def test_a_loop_shows_the_first_failure() -> None:
    lines = [*argparse("unrecognized arguments: --first"), *argparse("unrecognized arguments: --other") * 2]
    diagnosis = diagnosed(lines)
    assert diagnosis.values == {"arguments": "--first"}
    assert [(item.line, item.text) for item in diagnosis.evidence] == [(3, lines[2])]
    assert diagnosis.advice[0] == (
        "3 boots, and the last ones ended before they served. The first of them ended with: unknown-argument."
    )


@pytest.mark.parametrize(
    ("lines", "state", "reason", "boots"),
    [
        (engine(DISK) * 2, "failed", Reason.UNKNOWN, 2),
        ([*engine(DISK) * 3, *Log().boot().lines], "ready", None, 4),
        ([*engine(DISK) * 3, *Log().arguments().engine().loaded().lines], "booting", None, 4),
        ([*engine(DISK) * 3, *Log().arguments("'port': 1").lines], "booting", None, 4),
        ([*engine(DISK) * 2, *Log().boot().lines, *engine(DISK)], "failed", Reason.UNKNOWN, 4),
    ],
)
def test_otherwise_the_last_boot_counts(lines: list[str], state: str, reason: Reason | None, boots: int) -> None:
    diagnosis = diagnosed(lines)
    assert (diagnosis.state, diagnosis.reason, diagnosis.boots) == (state, reason, boots)


def test_an_offload_that_moved_nothing_explains_a_full_gpu() -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.11 GiB."
    asked = Log().arguments("'cpu_offload_gb': 54.0").engine()
    assert diagnosed(engine(oom, Log(list(asked.lines)))).reason is Reason.GPU_OOM  # it may be an older version
    asked.core("Offloader set to UVAOffloader")
    assert diagnosed(engine(oom, asked)).reason is Reason.OFFLOAD_NOT_APPLIED
    nothing = Log().arguments("'cpu_offload_gb': 54.0").engine().loaded("0.00")
    assert diagnosed(engine(oom, nothing)).reason is Reason.OFFLOAD_NOT_APPLIED
    moved = Log().arguments("'cpu_offload_gb': 54.0").engine().loaded("54.84")
    assert diagnosed(engine(oom, moved)).reason is Reason.GPU_OOM
    prefetch = Log().arguments("'offload_backend': 'prefetch', 'cpu_offload_gb': 54.0").engine()
    assert diagnosed(engine(oom, prefetch)).reason is Reason.GPU_OOM


def test_the_engine_that_dies_while_serving_is_explained_by_what_it_last_said() -> None:
    log = Log().boot()
    log.core("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.11 GiB.", 60, level="ERROR")
    still = diagnosed(log.lines)
    assert (still.state, still.reason) == ("ready", None)
    log.api("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", level="ERROR")
    died = diagnosed([*log.lines, "INFO:     Shutting down"])
    assert (died.state, died.phase, died.reason, died.evidence[0].line) == ("failed", "serving", Reason.GPU_OOM, 23)


def test_an_engine_that_is_gone_without_a_word_was_killed() -> None:
    log = Log().boot().api("[shutdown] MPClient: engine core exited unexpectedly; starting cleanup", 60)
    diagnosis = diagnosed(log.lines)
    assert (diagnosis.state, diagnosis.reason, diagnosis.evidence[0].line) == ("failed", Reason.KILLED, 23)


def test_an_error_that_the_boot_survives_is_none() -> None:
    log = Log().arguments().engine().raw("Traceback (most recent call last):", "OSError: usage report: no route")
    assert diagnosed(log.lines).state == "failed"
    assert diagnosed(log.loaded().lines).state == "booting"
    assert diagnosed(log.core("[shutdown] EngineCore: trigger received signal=SIGTERM").lines).state == "stopped"


def test_a_patch_that_fails_before_the_first_words_belongs_to_the_boot() -> None:
    lines = ["Error in sitecustomize; set PYTHONVERBOSE for traceback:", "ModuleNotFoundError: No module named 'x'"]
    diagnosis = diagnosed([*lines, *Log().boot().lines])
    assert (diagnosis.state, diagnosis.reason, diagnosis.boots) == ("ready", Reason.HOOK_NOT_INSTALLED, 1)
    assert diagnosis.evidence[0].line == 1


def test_an_offload_without_end_is_no_offload() -> None:
    log = Log().arguments("'cpu_offload_gb': 1e999").engine().failing("torch.OutOfMemoryError: CUDA out of memory.")
    found = diagnosed(log.lines)
    assert (found.reason, found.values) == (Reason.GPU_OOM, {})


def test_a_loop_of_boots_that_were_cut_while_they_tuned_does_not_say_let_it_finish() -> None:
    cut = Log().arguments().engine().loaded().sized().tuned(0).lines[:-2]
    once = diagnosed(cut)
    assert (once.state, once.advice[0][:27]) == ("tuning", "Kernels are being tuned bec")
    again = diagnosed(cut * 4)
    assert (again.state, again.reason) == ("failed", Reason.CRASH_LOOP)
    assert again.advice == (
        "4 boots, and the last ones ended before they served. The first of them ended with: unknown.",
        "Remove the restart policy until a boot serves.",
    )


def raised(text: str, *, before: str = "") -> list[str]:
    """A traceback without headers."""
    return [
        *([before] if before else []),
        "Traceback (most recent call last):",
        '  File "/a.py", line 3, in main',
        text,
    ]


def logged(log: Log, text: str) -> Log:
    """A traceback of the engine's process at level ERROR."""
    for line in ("A step failed.", "Traceback (most recent call last):", '  File "/a.py", line 3, in step', text):
        log.core(line, level="ERROR")
    return log


NOTE = "Could not cache non-existence of file. Will ignore error and continue. Error: [Errno 30] Read-only file system"
PARSED = Log().arguments().engine().lines


@pytest.mark.parametrize(
    "lines",
    [
        [*PARSED, f"(APIServer pid=1) {NOTE}: '/hub/a'"],
        [*PARSED, "(APIServer pid=1) Ignored error while writing commit hash: [Errno 13] Permission denied: '/hub/b'."],
        [*PARSED, *raised("ValueError: no usage", before="Exception in thread Thread-5 (_report_usage_worker):")],
        [*PARSED, "host:1:2 [0] NCCL INFO TUNER/Plugin: a.so: cannot open shared object file: No such file"],
        logged(Log().arguments().engine(), "ImportError: No module named 'fast_kernels'").loaded().lines,
    ],
)
def test_what_the_engine_survives_is_no_reason(lines: list[str]) -> None:
    diagnosis = diagnosed(lines)
    assert (diagnosis.state, diagnosis.reason, diagnosis.evidence) == ("booting", None, ())


def test_what_the_engine_survived_does_not_explain_its_failure() -> None:
    log = logged(Log().arguments().engine(), "PermissionError: [Errno 13] Permission denied: '/cache'").loaded()
    diagnosis = diagnosed(log.failing("RuntimeError: the shape is odd").lines)
    assert diagnosis.reason is Reason.UNKNOWN
    assert diagnosis.evidence[0].text.endswith("the shape is odd")


def test_an_exception_explains_more_than_a_line_on_the_way() -> None:
    way = Log().arguments().engine().raw("mkdir: cannot create directory '/root/.triton': Permission denied")
    assert diagnosed(engine("RuntimeError: the shape is odd", way)).reason is Reason.UNKNOWN


def test_killed_counts_alone_only() -> None:
    loaded = Log().arguments().engine().loaded().lines
    assert diagnosed([*loaded, "Killed"]).reason is Reason.KILLED
    both = diagnosed([*loaded, *raised("RuntimeError: the shape is odd"), "Killed"])
    assert (both.reason, both.evidence[0].text) == (Reason.UNKNOWN, "RuntimeError: the shape is odd")


def test_ranks_that_fail_together_are_one_boot() -> None:
    error = "RuntimeError: the shape is odd"
    children = [line for rank in range(4) for line in raised(error, before=f"Process SpawnProcess-{rank}:")]
    assert (diagnosed(children).boots, diagnosed(children).reason) == (1, Reason.UNKNOWN)
    tagged = [f"[rank{rank}]: {line}" for rank in range(4) for line in raised(error)]
    assert (diagnosed(tagged).boots, diagnosed(tagged).reason) == (1, Reason.UNKNOWN)


def test_the_failure_of_a_rank_outlives_the_progress_of_another() -> None:
    log = Log().arguments().engine()
    log.raw("(Worker_TP1 pid=9) Traceback (most recent call last):", "(Worker_TP1 pid=9) ValueError: rank 1 is odd")
    soon = diagnosed(log.core("Starting to load model /ckpt...", 5).lines)
    assert (soon.state, soon.evidence[0].line) == ("failed", 5)
    assert diagnosed(log.loaded().lines).state == "booting"  # two minutes later, so it did not end rank 1


def test_an_exception_that_was_dealt_with_is_not_the_cause() -> None:
    lines = raised("ImportError: cannot import name 'fast' from 'kernels'")
    during = ["During handling of the above exception, another exception occurred:"]
    last = raised("ValueError: 'FAST' is not a valid MoeBackend")
    assert diagnosed([*PARSED, *lines, *during, *last]).reason is Reason.BAD_ARGUMENT_VALUE


def test_chained_exceptions_that_are_unknown_show_the_last() -> None:
    cause = ["The above exception was the direct cause of the following exception:"]
    lines = [*PARSED, *raised("KeyError: 'rope'"), *cause, *raised("ValueError: the config has no rope")]
    assert diagnosed(lines).evidence[0].text == "ValueError: the config has no rope"


def test_an_engine_that_generates_serves() -> None:
    served = "Engine 000: Avg prompt throughput: 96.4 tokens/s, Avg generation throughput: 31.8 tokens/s"
    for line in (
        f"(APIServer pid=1) INFO 12-03 09:00:00 [loggers.py:335] {served}",
        "[2026-10-14 23:12:08] Decode batch, #running-req: 3, cuda graph: True, gen throughput (token/s): 164.9",
        'INFO:     192.0.2.61:50412 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        'INFO:     192.0.2.61:50412 - "GET /health HTTP/1.1" 200 OK',
    ):
        diagnosis = diagnosed([*raised("ValueError: a request is too long"), line])
        assert (diagnosis.state, diagnosis.phase, diagnosis.reason) == ("ready", Phase.SERVING, None), line
    health = diagnosed(['INFO:     192.0.2.61:50412 - "GET /health HTTP/1.1" 503 Service Unavailable'])
    assert health.state == "booting"


def test_two_boots_without_banners_are_two() -> None:
    first = Log().sized().tuned(configs=0).serving()
    second = Log(second=first.second + 60).sized().tuned()
    again = diagnosed([*first.lines, *second.lines])
    assert (again.state, again.boots) == ("booting", 2)
    failed = Log().loaded().failing("RuntimeError: the shape is odd")
    after = diagnosed([*failed.lines, *Log(second=failed.second + 60).loaded().lines])
    assert (after.state, after.boots) == ("booting", 2)
    late = diagnosed([*failed.lines, *Log(second=failed.second - 4).loaded().lines])
    assert (late.state, late.boots) == ("failed", 1)


def test_a_dead_engine_is_not_stopped_by_the_farewell_of_ray() -> None:
    log = Log().arguments().engine().loaded().core("Shutting down Ray distributed executor. Please ignore SIGTERM.")
    assert diagnosed(log.lines).state == "booting"
    assert diagnosed(log.failing("RuntimeError: the shape is odd").lines).state == "failed"
    assert diagnosed([*Log().boot().lines, "INFO:     Shutting down"]).state == "stopped"


def test_a_line_about_an_image_counts_before_the_engine_only() -> None:
    line = "bash: exec-hook: command not found"
    assert diagnosed([line]).reason is Reason.ENTRYPOINT_MISSING
    assert diagnosed([*PARSED, line]).reason is None


@pytest.mark.parametrize(
    ("lines", "summary"),
    [
        ([], "The log is empty."),
        (["milk"], "The log shows no boot of an engine."),
        (
            ["docker: Error response from daemon: toomanyrequests: limit"],
            "The container or its engine did not start: the registry refused to serve the image.",
        ),
        (
            Log().arguments("'served_model_name': ['plover']").engine().loaded().lines,
            "vLLM 0.30.0 with plover is profiling its memory.",
        ),
        (
            engine("torch.OutOfMemoryError: CUDA out of memory."),
            "vLLM 0.30.0 with /ckpt (DeepseekV41ForCausalLM) failed while starting: the GPU ran out of memory.",
        ),
        (
            ["[2026-10-11 08:30:40] server_args=ServerArgs(model_path='/m', port=30000)", "Killed"],
            "SGLang with /m failed while starting: a process crashed or was killed.",
        ),
    ],
)
def test_the_summary_is_one_sentence(lines: list[str], summary: str) -> None:
    assert diagnosed(lines).summary == summary


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("lane.service: Main process exited, code=exited, status=1/FAILURE", Reason.UNKNOWN),
        ("lane.service: Main process exited, code=killed, status=9/KILL", Reason.KILLED),
        ("lane.service: A process of this unit has been killed by the OOM killer.", Reason.HOST_OOM_KILLED),
        ("engine-1 exited with code 1", Reason.UNKNOWN),
        ("thread '<unnamed>' panicked at src/lib.rs:9:5:", Reason.UNKNOWN),
        ("Error: OCI runtime error: crun: something odd", Reason.UNKNOWN),
        ("  what():  CUDA error: out of memory", Reason.GPU_OOM),
    ],
)
def test_other_ends(line: str, reason: Reason) -> None:
    diagnosis = diagnosed([*PARSED, line])
    assert (diagnosis.state, diagnosis.reason, diagnosis.evidence[0].text) == ("failed", reason, line)


def test_an_exit_after_a_stop_signal_is_no_failure() -> None:
    for line in ("lane.service: Main process exited, code=exited, status=143/n/a", "engine-1 exited with code 130"):
        assert diagnosed([*PARSED, line]).state == "booting"


def test_an_engine_that_generates_after_a_failure_was_started_again() -> None:
    failed = Log().arguments().engine().failing("RuntimeError: the shape is odd")
    report = "Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 31.8 tokens/s"
    again = diagnosed([*failed.lines, *Log(second=failed.second + 60).api(report).lines])
    assert (again.state, again.boots) == ("ready", 2)
    late = diagnosed([*failed.lines, *Log(second=failed.second + 1).api(report).lines])
    assert (late.state, late.boots) == ("failed", 1)
    stopping = Log().boot().api("[shutdown] API server: shutdown triggered", 9).api(report, 60)
    assert (diagnosed(stopping.lines).state, diagnosed(stopping.lines).boots) == ("stopped", 1)


def test_the_form_of_earlier_releases() -> None:
    lines = [
        "INFO 12-05 20:24:40 api_server.py:585] vLLM API server version 0.6.4",
        "INFO 12-05 20:24:40 api_server.py:586] args: Namespace(host=None, port=8000, model='plover-7b', seed=0)",
        "INFO 12-05 20:24:41 llm_engine.py:234] Initializing an LLM engine (v0.6.4) with config: model='plover-7b'",
        "INFO 12-05 20:24:44 model_runner.py:1072] Starting to load model plover-7b...",
    ]
    served = diagnosed([*lines, "INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)"])
    assert (served.state, served.summary) == ("ready", "vLLM 0.6.4 with plover-7b is ready, 4 s after its start.")
    header = "ERROR 12-05 20:24:46 engine.py:366] "
    error = ["Traceback (most recent call last):", '  File "/a.py", line 3, in load_weights', "KeyError: 'layers.0.w'"]
    failed = diagnosed([*lines, *(header + line for line in error), "RuntimeError: Engine process failed to start."])
    assert (failed.reason, failed.evidence[0].line) == (Reason.WEIGHTS_MISMATCH, 7)
