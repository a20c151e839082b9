from gb300serve.simulator.engine.script import EventTimeline, Write, format_bar, format_clock
from tests.support.simulated import STARTED


def written(timeline: EventTimeline) -> list[tuple[float, str, str]]:
    return [(event.at, event.stream, event.text) for event in timeline.script if isinstance(event, Write)]


def test_a_traceback_is_pythons() -> None:
    timeline = EventTimeline(STARTED)
    timeline.traceback(("/bin/vllm:8:<module>:sys.exit(main())", "vllm/a.py:1:f:x = {1: 2}"), "KeyError: 'k'\nmore")
    assert "".join(text for _, _, text in written(timeline)) == (
        "Traceback (most recent call last):\n"
        '  File "/bin/vllm", line 8, in <module>\n'
        "    sys.exit(main())\n"
        '  File "/usr/local/lib/python3.12/dist-packages/vllm/a.py", line 1, in f\n'
        "    x = {1: 2}\n"
        "KeyError: 'k'\n"
        "more\n"
    )


def test_time_does_not_run_back() -> None:
    timeline = EventTimeline(STARTED)
    timeline.until(5)
    timeline.until(3)
    assert timeline.at == 5


def test_clocks_and_bars() -> None:
    assert [format_clock(seconds) for seconds in (0, 59.9, 61, 3725)] == ["00:00", "00:59", "01:01", "1:02:05"]
    assert [format_bar(done, 8) for done in (0, 1, 4, 8)] == ["          ", "█▎        ", "█████     ", "█" * 10]
