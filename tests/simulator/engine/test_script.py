from gb300serve.simulator.engine.script import CORE, EventTimeline, Write, format_bar, format_clock, format_stamp
from tests.support.simulated import STARTED


def written(tape: EventTimeline) -> list[tuple[float, str, str]]:
    return [(event.at, event.stream, event.text) for event in tape.script if isinstance(event, Write)]


def test_the_engines_formats() -> None:
    tape = EventTimeline(STARTED)
    tape.wait(1.25)
    tape.log(CORE, "core.py:1", "one\ntwo")
    tape.flashinfer("autotuner.py:2", "3")
    tape.uvicorn("four")
    tape.uvicorn("five", "WARNING")
    assert written(tape) == [
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


def test_a_traceback_is_pythons() -> None:
    tape = EventTimeline(STARTED)
    tape.traceback("", ("/bin/vllm:8:<module>:sys.exit(main())", "vllm/a.py:1:f:x = {1: 2}"), "KeyError: 'k'\nmore")
    assert "".join(text for _, _, text in written(tape)) == (
        "Traceback (most recent call last):\n"
        '  File "/bin/vllm", line 8, in <module>\n'
        "    sys.exit(main())\n"
        '  File "/usr/local/lib/python3.12/dist-packages/vllm/a.py", line 1, in f\n'
        "    x = {1: 2}\n"
        "KeyError: 'k'\n"
        "more\n"
    )


def test_time_does_not_run_back() -> None:
    tape = EventTimeline(STARTED)
    tape.until(5)
    tape.until(3)
    assert tape.at == 5


def test_clocks_and_bars() -> None:
    assert [format_clock(seconds) for seconds in (0, 59.9, 61, 3725)] == ["00:00", "00:59", "01:01", "1:02:05"]
    assert [format_bar(done, 8) for done in (0, 1, 4, 8)] == ["          ", "█▎        ", "█████     ", "█" * 10]
    assert format_stamp(STARTED) == "11-30 00:53:20"
