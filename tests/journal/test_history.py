from gb300serve.journal.history import MeasuredTimes, RunHistory, measure_times
from tests.support.entries import V13, V14, entry, record
from tests.support.fake_clock import START

REPLACED = entry(at=START + 100.0, before=(V13,), after=(V14,))
ENDED = entry(at=START + 200.0, verb="down", result="stopped", before=(V14,), after=())
DIED = entry(at=START + 200.0, result="died", before=(V14,), after=())


def test_what_should_serve_is_what_the_last_change_left() -> None:
    told = RunHistory((entry(after=(V13,)), REPLACED, entry(on="sim", after=())))
    assert told.last_change("docker") == REPLACED
    assert RunHistory().last_change("docker") is None


def test_who_was_asked_to_end() -> None:
    assert RunHistory((REPLACED,)).is_stopped_on_request("id-v13", START + 99.0)
    assert not RunHistory((REPLACED,)).is_stopped_on_request("id-v14", START + 150.0)
    assert RunHistory((REPLACED, ENDED)).is_stopped_on_request("id-v14", START + 199.0)
    assert not RunHistory((REPLACED, DIED)).is_stopped_on_request("id-v14", START + 199.0)
    assert not RunHistory((REPLACED, ENDED)).is_stopped_on_request("id-v14", START + 9000.0)
    assert not RunHistory().is_stopped_on_request("id-v14", None)


def test_since_when_a_container_runs_and_whether_it_was_seen_to_serve() -> None:
    started = entry(at=START + 100.0, result="started", before=(V13,), after=(V13, V14), run="r2")
    told = RunHistory((entry(after=(V13,)), started, entry(on="sim", after=())), (record("v14", run="r2"),))
    assert [told.running_since(each.id, "docker") for each in (V13, V14)] == [START, START + 100.0]
    assert told.running_since("id-v15", "docker") is None
    assert told.has_been_ready("id-v13", START)
    assert not told.has_been_ready("id-v14", START + 100.0)
    beside = entry(at=START + 200.0, before=(V14,), after=(V13, V14), run="r3")
    assert not RunHistory((started, beside), (record("v13", run="r3"),)).has_been_ready("id-v14", START)
    assert RunHistory((started, beside), (record("v14", run="r3"),)).has_been_ready("id-v14", START)


def test_a_launch_is_under_way_until_its_entry_is_there() -> None:
    booting = record(state="booting", at=150.0, ready_seconds=None)
    assert RunHistory((REPLACED,), (booting,)).has_unfinished_launch("docker")
    assert not RunHistory((REPLACED,), (booting,)).has_unfinished_launch("sim")
    assert not RunHistory((REPLACED, ENDED), (booting,)).has_unfinished_launch("docker")
    assert not RunHistory((REPLACED,), (record(at=150.0),)).has_unfinished_launch("docker")


def test_the_last_good_run_of_another_plan() -> None:
    runs = (
        record("v12"),
        record("v13", 1.0),
        record("v15", 2.0, ready_seconds=None, state="started"),
        record("v14", 3.0),
    )
    told = RunHistory((), runs)
    assert told.last_good("deepseek-v4.1-flash", "docker", other_than="plan-v14") == runs[1]
    assert told.last_good("deepseek-v4.1-flash", "docker", other_than="plan-v13") == runs[3]
    assert told.last_good("deepseek-v4.1-flash", "docker", other_than="plan-v14", release="v12") == runs[0]
    assert told.last_good("deepseek-v4.1-flash", "docker", other_than=None, release="v15") is None
    assert told.last_good("deepseek-v4.1-flash", "sim", other_than=None) is None
    assert told.last_good("glm", "docker", other_than=None) is None


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
    fresh = measure_times(records, "plan-v14", "docker", kept=False)
    assert fresh == MeasuredTimes(3, {"starting": 30.0, "loading-weights": 100.0}, 500.0)
    assert measure_times(records, "plan-v14", "docker", kept=True) == MeasuredTimes(1, {"starting": 3.0}, 280.0)


def test_nothing_is_known_of_what_never_ran() -> None:
    assert measure_times([record()], "another", "docker", kept=False) == MeasuredTimes()


def test_a_boot_that_nobody_timed_counts_for_nothing() -> None:
    assert (
        measure_times([record(ready_seconds=None, state="ready")], "plan-v14", "docker", kept=False) == MeasuredTimes()
    )
