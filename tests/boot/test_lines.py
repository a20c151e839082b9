import pytest

from gb300serve.boot.lines import Record, Stopwatch, parse


@pytest.mark.parametrize(
    ("line", "record"),
    [
        (
            "(APIServer pid=1) INFO 11-29 19:58:59 [core.py:133] text",
            Record("APIServer", "INFO", "11-29 19:58:59", "text", "levelled"),
        ),
        (
            "(Worker_TP0 pid=9) ERROR 11-29 19:58:59 [core.py:133]   File",
            Record("Worker_TP0", "ERROR", "11-29 19:58:59", "  File", "levelled"),
        ),
        ("INFO 11-29 19:58:59 core.py:133] older", Record("", "INFO", "11-29 19:58:59", "older", "levelled")),
        (
            "(EngineCore pid=4) 2026-09-18 17:51:30,911 - INFO - autotuner.py:972 - flashinfer.jit: [Autotuner]: x",
            Record("EngineCore", "INFO", "09-18 17:51:30.911", "[Autotuner]: x"),
        ),
        ("(APIServer pid=1) INFO:     Started", Record("APIServer", "INFO", "", "Started")),
        ("ERROR:    [Errno 98] x", Record("", "ERROR", "", "[Errno 98] x")),
        (
            "[2026-09-29 21:29:50 TP0] Load weight begin.",
            Record("", "", "09-29 21:29:50", "Load weight begin.", "bracketed"),
        ),
        ("[2026-09-29 21:29:50] INFO:     Started", Record("", "INFO", "09-29 21:29:50", "Started", "bracketed")),
        ("[2026-09-29 21:29:50] SIGTERM received.", Record("", "", "09-29 21:29:50", "SIGTERM received.", "bracketed")),
        ("[rank0]:[W1014 16:49:28.106652696 a.cpp:3] low", Record("", "W", "", "low")),
        ("[rank0]: ValueError: x", Record("", "", "", "ValueError: x")),
        (
            "(EngineCore pid=402) (RayWorkerWrapper pid=911, ip=192.0.2.52) INFO 10-09 20:15:59 [a.py:1] x",
            Record("RayWorkerWrapper", "INFO", "10-09 20:15:59", "x", "levelled"),
        ),
        ("(W pid=9) x: 6.91 GiB [repeated 2x across cluster]", Record("W", "", "", "x: 6.91 GiB")),
        ("x (repeated 2x across cluster, see [1])", Record("", "", "", "x")),
        ("ERROR [core.py:1385]     raise x", Record("", "ERROR", "", "    raise x", "levelled")),
        ("2026-10-18T03:58:41.06Z a log's prefix", Record("", "", "", "2026-10-18T03:58:41.06Z a log's prefix")),
        (
            "\x1b[0;36m(APIServer pid=1)\x1b[0;0m INFO 11-29 19:58:59 [a.py:1] x",
            Record("APIServer", "INFO", "11-29 19:58:59", "x", "levelled"),
        ),
        ("just words | and more", Record("", "", "", "just words | and more")),
    ],
)
def test_a_record_is_taken_apart(line: str, record: Record) -> None:
    assert parse(line) == record


@pytest.mark.parametrize(
    ("stamps", "seconds"),
    [
        (("12-03 08:00:00", "12-03 08:01:30"), 90.0),
        (("12-31 23:59:59", "01-01 00:00:04"), 5.0),
        (("12-31 23:59:59", "01-01 00:00:04", "01-01 00:00:06"), 7.0),
        (("02-28 23:59:00", "03-01 00:00:00"), 60.0),
        (("02-29 23:59:00", "03-01 00:00:00", "03-01 00:00:30"), 90.0),
        (("12-03 08:00:00.250", "12-03 08:00:01"), 0.75),
        (("12-03 08:00:10", "12-03 08:00:20", "12-03 08:00:18.750"), 10.0),
        (("12-03 08:00:10", "12-03 08:00:05", "12-03 08:00:11"), 1.0),
    ],
)
def test_seconds_pass_between_stamps(stamps: tuple[str, ...], seconds: float) -> None:
    watch = Stopwatch()
    for stamp in stamps:
        watch.take_stamp(stamp)
        watch.now()
    assert watch.now() == pytest.approx(seconds)


def test_stamps_that_nobody_asked_for_are_not_needed() -> None:
    watch = Stopwatch()
    for minute in range(10):
        watch.take_stamp(f"12-03 08:{minute:02d}:00")
    assert watch.now() == 540.0


def test_what_the_caller_says_never_runs_backwards() -> None:
    watch = Stopwatch()
    watch.advance(12.0)
    watch.advance(11.0)
    assert watch.now() == 12.0


def test_the_keys_of_the_terminal_are_no_part_of_a_line() -> None:
    assert parse("^CINFO:     Shutting down").text == "Shutting down"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("RuntimeError('CUDA error: out of memory\\nCompile with x')", "RuntimeError: CUDA error: out of memory"),
        ('torch.OutOfMemoryError("it\'s full")', "torch.OutOfMemoryError: it's full"),
        ("see RuntimeError('x')", "see RuntimeError('x')"),
    ],
)
def test_an_exception_as_python_writes_it(written: str, text: str) -> None:
    assert parse(f"ERROR 01-05 10:10:10 engine.py:136] {written}").text == text
