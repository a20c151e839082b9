from dataclasses import replace

import pytest

from gb300serve.simulator.engine.faults import FAULTS, faults_of
from gb300serve.simulator.engine.script import EventTimeline
from gb300serve.simulator.engine.settings import SurroundingsError
from gb300serve.simulator.engine.sglang.deaths import counted, say, shutdown_script, traceback, uvicorn
from tests.support.sglang import SURROUNDINGS, boot_script
from tests.support.simulated import STARTED, boot_of, exit_code, said


@pytest.mark.parametrize(
    ("fault", "reason", "phase", "code"),
    [
        ("host-oom", "killed", "loading-weights", 1),
        ("gpu-oom", "gpu-oom", "loading-weights", 137),
        ("port-taken", "port-in-use", "serving", 137),
        ("crash-after-ready", "killed", "serving", 137),
    ],
)
def test_each_dies_in_its_own_words(fault: str, reason: str, phase: str, code: int) -> None:
    script = boot_script(surroundings=replace(SURROUNDINGS, fault=fault))
    diagnosis = boot_of(script).result()
    assert (diagnosis.state, diagnosis.reason, diagnosis.phase, exit_code(script)) == ("failed", reason, phase, code)


def test_every_ending_is_a_rehearsal() -> None:
    assert set(faults_of("sglang")) <= FAULTS.keys()
    assert boot_of(boot_script(surroundings=replace(SURROUNDINGS, fault="slow-disk"))).result().state == "ready"


def test_a_rehearsal_of_the_other_engine_is_refused() -> None:
    with pytest.raises(SurroundingsError, match="no rehearsal of hook-failed for sglang; there are host-oom, gpu-oom"):
        boot_script(surroundings=replace(SURROUNDINGS, fault="hook-failed"))


def test_a_stop_is_no_failure() -> None:
    stop = shutdown_script(STARTED, 400.0)
    assert boot_of((*boot_script(), *stop)).result().state == "stopped"
    assert exit_code(stop) == 0


def test_lines_have_a_date_and_no_level() -> None:
    tape = EventTimeline(STARTED)
    say(tape, "Load weight begin.")
    tape.wait(61.0)
    uvicorn(tape, "Application startup complete.")
    traceback(tape, ("sglang/srt/a.py:7:load:raise X",), "ValueError: x")
    assert said(tape.script) == [
        "[2026-11-30 00:53:20] Load weight begin.",
        "[2026-11-30 00:54:21] INFO:     Application startup complete.",
        "Traceback (most recent call last):",
        '  File "/usr/local/lib/python3.12/dist-packages/sglang/srt/a.py", line 7, in load',
        "    raise X",
        "ValueError: x",
    ]


def test_a_bar_is_full_when_its_time_is_over() -> None:
    tape = EventTimeline(STARTED)
    counted(tape, "Capturing batches (bs=1):", 2, 10.0)
    assert [line.partition("[")[0].strip() for line in said(tape.script)] == [
        "Capturing batches (bs=1):   0%|          | 0/2",
        "Capturing batches (bs=1):  50%|█████     | 1/2",
        "Capturing batches (bs=1): 100%|██████████| 2/2",
    ]
    assert tape.at == 10.0
