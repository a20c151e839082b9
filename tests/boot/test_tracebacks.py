from gb300serve.boot.lines import parse
from gb300serve.boot.tracebacks import LineRole, TracebackReader

BEGIN = "Traceback (most recent call last):"
FRAME = '  File "/opt/vllm/weights.py", line 8, in load_weights'


def roles(*lines: str) -> list[str]:
    reader = TracebackReader()
    return [reader.read(parse(line))[0].name for line in lines]


def test_the_lines_of_a_traceback() -> None:
    assert roles("hello", BEGIN, FRAME, "    raise ValueError(text)", "ValueError: no", "that long", "INFO:     x") == [
        "NONE", "FRAME", "FRAME", "FRAME", "EXCEPTION", "MESSAGE", "NONE",
    ]  # fmt: skip


def test_an_engine_s_header_may_stand_before_it() -> None:
    header = "[2026-10-07 11:48:15 TP1] "
    assert roles(f"{header}Scheduler hit an exception: {BEGIN}", FRAME, "KeyError: 'x'", f"{header}bye") == [
        "FRAME", "FRAME", "EXCEPTION", "NONE",
    ]  # fmt: skip


def test_functions_are_those_of_the_last_traceback() -> None:
    reader = TracebackReader()
    for line in (BEGIN, FRAME, "KeyError: 'x'", BEGIN, FRAME.replace("load_weights", "forward")):
        _, traceback = reader.read(parse(line))
    assert traceback.functions == {"forward", "weights.py:forward"}


def test_processes_do_not_mix() -> None:
    first, second = "(Worker_TP0 pid=1) ", "(Worker_TP1 pid=2) "
    lines = (first + BEGIN, second + BEGIN, first + FRAME, second + FRAME, first + "KeyError: 'x'", second + "pass")
    assert roles(*lines)[-2:] == ["EXCEPTION", "NONE"]


def test_chained_exceptions_are_one_failure() -> None:
    reader = TracebackReader()
    chained = "The above exception was the direct cause of the following exception:"
    subprocess = "RuntimeError: Error raised in subprocess:"
    lines = [BEGIN, FRAME, "KeyError: 'x'", chained, BEGIN, FRAME, subprocess, BEGIN, FRAME, "ImportError: y"]
    assert {reader.read(parse(line))[1].chain for line in lines} == {1}
    assert {reader.read(parse(line))[1].chain for line in (BEGIN, FRAME, "KeyError: 'x'")} == {2}


def test_exceptions_that_python_reports_and_survives() -> None:
    for before in (
        "Exception ignored in: <function Pool.__del__ at 0x7f>",
        "--- Logging error ---",
        "Exception in thread Thread-3 (_report_usage_worker):",
        "[2026-10-07 11:48:15] Could not read the tuned set, falling back to the default",
    ):
        assert roles(before, BEGIN, FRAME, "KeyError: 'x'")[1:] == ["HANDLED"] * 3, before


def test_a_note_of_its_own_does_not_handle_the_next_exception() -> None:
    note = "Could not cache non-existence of file. Will ignore error and continue."
    assert roles(note, BEGIN, FRAME, "KeyError: 'x'")[-1] == "EXCEPTION"


def test_the_reader_keeps_few_processes() -> None:
    reader = TracebackReader()
    for number in range(1000):
        assert reader.read(parse(f"(Worker_TP{number} pid=1) {BEGIN}"))[0] is LineRole.FRAME
    assert len(reader._tracebacks) <= 64
