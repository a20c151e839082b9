from gb300serve.simulator.engine.sglang.log import SglangTimeline
from tests.support.simulated import STARTED, said


def test_lines_have_a_date_and_no_level() -> None:
    timeline = SglangTimeline(STARTED)
    timeline.log("Load weight begin.")
    timeline.wait(61.0)
    timeline.uvicorn("Application startup complete.")
    timeline.traceback(("sglang/srt/a.py:7:load:raise X",), "ValueError: x")
    assert said(timeline.script) == [
        "[2026-11-30 00:53:20] Load weight begin.",
        "[2026-11-30 00:54:21] INFO:     Application startup complete.",
        "Traceback (most recent call last):",
        '  File "/usr/local/lib/python3.12/dist-packages/sglang/srt/a.py", line 7, in load',
        "    raise X",
        "ValueError: x",
    ]


def test_a_bar_is_full_when_its_time_is_over() -> None:
    timeline = SglangTimeline(STARTED)
    timeline.progress_bar("Capturing batches (bs=1)", 2, 10.0)
    assert [line.partition("[")[0].strip() for line in said(timeline.script)] == [
        "Capturing batches (bs=1):   0%|          | 0/2",
        "Capturing batches (bs=1):  50%|█████     | 1/2",
        "Capturing batches (bs=1): 100%|██████████| 2/2",
    ]
    assert timeline.at == 10.0
