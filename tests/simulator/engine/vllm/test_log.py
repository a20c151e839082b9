from gb300serve.simulator.engine.script import Write
from gb300serve.simulator.engine.vllm.log import CORE, VllmTimeline
from tests.support.simulated import STARTED


def test_the_formats_of_its_loggers() -> None:
    timeline = VllmTimeline(STARTED)
    timeline.wait(1.25)
    timeline.log(CORE, "core.py:1", "one\ntwo")
    timeline.flashinfer("autotuner.py:2", "3")
    timeline.uvicorn("four")
    timeline.uvicorn("five", "WARNING")
    written = [(event.at, event.stream, event.text) for event in timeline.script if isinstance(event, Write)]
    assert written == [
        (1.25, "stdout", "(EngineCore pid=364) INFO 11-30 00:53:21 [core.py:1] one\n"),
        (1.25, "stdout", "(EngineCore pid=364) INFO 11-30 00:53:21 [core.py:1] two\n"),
        (
            1.25,
            "stderr",
            "(EngineCore pid=364) 2026-11-30 00:53:21,250 - INFO - autotuner.py:2 - flashinfer.jit: [Autotuner]: 3\n",
        ),
        (1.25, "stderr", "(APIServer pid=1) INFO:     four\n"),
        (1.25, "stderr", "(APIServer pid=1) WARNING:  five\n"),
    ]
