from gb300serve.journal.history import MeasuredTimes, measured
from tests.support.entries import record


def test_the_median_of_good_boots_of_the_same_plan() -> None:
    records = [
        record(phases=(("starting", 20.0), ("loading-weights", 100.0), ("starting", 2.0)), ready_seconds=400.0),
        record(phases=(("starting", 30.0),), ready_seconds=500.0),
        record(phases=(("starting", 40.0),), ready_seconds=900.0),
        record(phases=(("starting", 1.0),), ready_seconds=None, state="failed"),
        record(phases=(("starting", 2.0),), on="sim"),
        record(phases=(("starting", 3.0),), kept=True, ready_seconds=280.0),
        record("v13", phases=(("starting", 4.0),)),
    ]
    fresh = measured(records, "plan-v14", "docker", kept=False)
    assert fresh == MeasuredTimes(3, {"starting": 30.0, "loading-weights": 100.0}, 500.0)
    assert measured(records, "plan-v14", "docker", kept=True) == MeasuredTimes(1, {"starting": 3.0}, 280.0)


def test_nothing_is_known_of_what_never_ran() -> None:
    assert measured([record()], "another", "docker", kept=False) == MeasuredTimes()


def test_a_boot_that_nobody_timed_counts_for_nothing() -> None:
    assert measured([record(ready_seconds=None, state="ready")], "plan-v14", "docker", kept=False) == MeasuredTimes()
