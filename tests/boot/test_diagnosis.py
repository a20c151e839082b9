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
