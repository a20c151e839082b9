import pytest

from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from tests.boot.cases import LOADING, Case, argparse, check, engine, name
from tests.boot.logs import CLOSING, Log

CASES = [
    Case(
        Reason.ENGINE_STARTUP_TIMEOUT,
        [
            *LOADING,
            "(APIServer pid=1) TimeoutError: Timed out waiting for engine core processes to start. This is often"
            " caused by slow weight loading for large models. Waited 900s (configured by VLLM_ENGINE_READY_TIMEOUT_S).",
            *Log(second=900).heartbeats(2).lines,
        ],
        10,
        {"waited_seconds": 900, "variable": "VLLM_ENGINE_READY_TIMEOUT_S"},
        Phase.PROFILING,
    ),
    Case(
        Reason.HOOK_NOT_INSTALLED,
        ["PIN_HOT hook FAILED to install: ModuleNotFoundError: No module named 'vllm.x'", *Log().boot().lines],
        1,
        {"hook": "PIN_HOT", "error": "ModuleNotFoundError: No module named 'vllm.x'"},
        Phase.SERVING,
        "ready",
    ),
    Case(
        Reason.HOOK_NOT_INSTALLED,
        ["PIN_HOT finder armed PIN_MODE=split", *Log().boot().lines],
        1,
        {},
        Phase.SERVING,
        "ready",
    ),
    Case(
        Reason.HOOK_ABORTED,
        engine("RuntimeError: PIN_HOT abort layer 11 before: MemAvailable 8.71 GiB < 10 GiB", Log().raw(*LOADING)),
        14,
        {"layer": 11, "what": "MemAvailable", "available_gib": 8.71, "needed_gib": 10},
        Phase.PROFILING,
    ),
    Case(
        Reason.UNKNOWN,
        engine("ZeroDivisionError: the disk said no", Log().raw(*LOADING)),
        14,
        {"exception": "ZeroDivisionError"},
        Phase.PROFILING,
    ),
    Case(Reason.KILLED, [*LOADING, CLOSING], 10, {}, Phase.PROFILING),  # without a word of the engine process
    Case(
        Reason.UNKNOWN,
        [*LOADING, "(EngineCore pid=118) ERROR 12-03 08:00:09 [core.py:1510] EngineCore failed to start.", CLOSING],
        10,
        {},
        Phase.PROFILING,
    ),
    Case(Reason.UNKNOWN, [CLOSING], 1, {}, Phase.STARTING),  # the end of a log that was cut
    Case(Reason.CRASH_LOOP, argparse("unrecognized arguments: --max-seqs 8") * 3, 3, {"arguments": "--max-seqs 8"}),
    Case(
        Reason.OFFLOAD_NOT_APPLIED,
        engine(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.11 GiB.",
            Log().raw(
                *Log()
                .arguments("'cpu_offload_gb': 54.0, 'cpu_offload_params': ['experts']")
                .engine()
                .core("Offloader set to UVAOffloader")
                .loaded(None)
                .lines
            ),
        ),
        14,
        {"asked_gib": 54.0, "offloaded_gib": 0, "tried": "2.11 GiB"},
        Phase.PROFILING,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_line_that_names_the_cause_is_found(case: Case) -> None:
    check(case)
