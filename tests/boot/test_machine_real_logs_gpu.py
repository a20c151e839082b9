"""Logs of vLLM 0.32.0 on one NVIDIA H200, one boot each, whole, of models with random weights.

Not what a Station prints: no FlashInfer tuning, no DeepGEMM, torch 2.11.
"""

from pathlib import Path

import pytest

from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.boot.receipts import LearnedBoot
from gb300serve.engines.logs import boot_machine
from tests.boot.test_diagnosis_real_logs import Said
from tests.boot.test_machine_real_logs_sglang import fed

LOGS = Path(__file__).parent / "logs_gpu"

SAID = {
    "a00-smoke0": Said(
        "stopped",
        "serving",
        None,
        0,
        {"engine_version": "0.32.0", "weights_gib": 27.4, "kv_cache_gib": 41.32, "kv_cache_tokens": 902736},
    ),
    "a-off1": Said("stopped", "serving", None, 0, {"kv_cache_gib": 42.73}),
    "a-off1.41": Said("stopped", "serving", None, 0, {"kv_cache_gib": 43.43}),
    "a-off5": Said("stopped", "serving", None, 0, {"kv_cache_gib": 46.93}),
    "b-util90-off5": Said("stopped", "serving", None, 0, {"kv_cache_gib": 102.85}),
    "e-nopat2": Said("stopped", "serving", None, 0, {"kv_cache_gib": 43.59}),
    "e-off20": Said("stopped", "serving", None, 0, {"kv_cache_gib": 61.77}),
    "f-backend": Said("failed", "starting", "bad-argument-value", 2, {"argument": "--offload-backend"}),
    "f-badopt": Said("failed", "starting", "unknown-argument", 4, {"arguments": "--offload-backnd uva"}),
    "f-ctx": Said("failed", "starting", "context-exceeds-model", 56, {"asked": 1048576, "limit": 131072}),
    "f-oom-weights": Said("failed", "loading-weights", "gpu-oom", 98, {"tried": "1.41 GiB", "total_gib": 139.8}),
    "f-smallkv": Said("stopped", "serving", None, 0, {"kv_cache_gib": 6.37}),
    "f-util100": Said("failed", "starting", "gpu-memory-in-use", 49, {"free_gib": 139.29, "total_gib": 139.8}),
    "m-load": Said("stopped", "serving", None, 0, {}),
}


def diagnosis(name: str) -> Diagnosis:
    with (LOGS / f"{name}.log").open(encoding="utf-8", newline="\n") as log:
        return fed(list(log)).result()


@pytest.mark.parametrize("name", SAID)
def test_what_the_engine_said_on_a_gpu(name: str) -> None:
    found, said = diagnosis(name), SAID[name]
    line = found.evidence[0].line if found.evidence else 0
    values = {key: value for key, value in found.values.items() if key in said.values}
    assert Said(found.state, found.phase, found.reason, line, values) == said


def test_every_log_is_judged() -> None:
    assert {path.stem for path in LOGS.iterdir()} == SAID.keys()


def test_lines_of_the_compiled_part_are_in_the_phase_of_compiling() -> None:
    seconds = [(phase.value, seconds) for phase, seconds in diagnosis("a00-smoke0").phases]
    assert seconds[2:5] == [("profiling", 1.0), ("compiling", 15.0), ("profiling", 5.0)]
    assert "compiling" not in {phase.value for phase, _ in diagnosis("e-off20").phases}


def test_the_silent_warm_up_before_the_graphs_is_not_their_capture() -> None:
    """`Graph capturing finished in 1 secs`, 19 s after the line of the KV cache."""
    seconds = [(phase.value, seconds) for phase, seconds in diagnosis("a00-smoke0").phases]
    assert seconds[5:] == [("sizing-kv-cache", 18.0), ("capturing-graphs", 1.0), ("serving", 2.0)]


@pytest.mark.parametrize("name", [name for name, said in SAID.items() if said.phase == "serving"])
def test_what_a_boot_teaches_holds_for_it(name: str) -> None:
    machine, lesson = boot_machine(), LearnedBoot()
    with (LOGS / f"{name}.log").open(encoding="utf-8", newline="\n") as log:
        for line in log:
            lesson.take(machine.feed(line))
    receipts = lesson.receipts("here")
    assert sum(receipt.line.startswith("secs, took") for receipt in receipts) == ("e-" not in name)
    assert all(receipt.tolerance < receipt.value for receipt in receipts if receipt.value)
    assert {"Available KV cache memory: {value} GiB", "GPU KV cache size: {value} tokens"} <= {
        receipt.line for receipt in receipts
    }


def test_a_whole_gpu_is_more_than_an_engine_may_use() -> None:
    assert diagnosis("f-util100").advice == (
        "No other process is in the way: the engine's own CUDA context takes 0.51 of 139.8 GiB before it loads any"
        " weight.",
        "Set gpu_memory_utilization to 0.996 or less (it is 1.0).",
    )


def test_memory_that_runs_out_while_loading_is_not_a_matter_of_requests() -> None:
    first, second, third = diagnosis("f-oom-weights").advice
    assert first == (
        "The GPU ran out of memory in the phase loading-weights: 1.41 GiB were requested, 167.12 MiB were free."
    )
    assert second.startswith("The weights do not fit: offload more of them")
    assert "max_num_seqs" not in second + third
