import pytest

from gb300serve.boot.lines import Stopwatch


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
        watch.saw(stamp)
        watch.now()
    assert watch.now() == pytest.approx(seconds)


def test_stamps_that_nobody_asked_for_are_not_needed() -> None:
    watch = Stopwatch()
    for minute in range(10):
        watch.saw(f"12-03 08:{minute:02d}:00")
    assert watch.now() == 540.0


def test_what_the_caller_says_never_runs_backwards() -> None:
    watch = Stopwatch()
    watch.told(12.0)
    watch.told(11.0)
    assert watch.now() == 12.0
