import pytest

from gb300serve.boot.phases import Phase
from gb300serve.boot.progress import AWAITED, BarClock, ProgressBar, ProgressCounter, estimate, minutes, read_bar


def test_bars_say_how_far_and_how_long() -> None:
    assert read_bar("[AutoTuner]: Tuning a::b:  22%|██   | 5/22 [03:00<13:00, 42.84s/profile]") == ProgressBar(
        "[AutoTuner]: Tuning a::b", 5, 22, 180.0
    )
    assert read_bar("Loading shards:   0% Completed | 0/131 [00:00<?, ?it/s]") == ProgressBar(
        "Loading shards", 0, 131, 0.0
    )
    assert read_bar("Loading: 100%|███| 9/9 [1:00:05<00:00,  1.2s/it]") == ProgressBar("Loading", 9, 9, 3605.0)


def test_a_bar_that_is_cut_off_is_none() -> None:
    assert read_bar("Loading shards:  39% Completed | ") is None


def test_bars_put_the_time_after_the_last_stamp() -> None:
    clock = BarClock()
    assert clock.time_of(ProgressBar("a", 0, 9, 0.0), 100.0) == 100.0
    assert clock.time_of(ProgressBar("a", 5, 9, 60.0), 100.0) == 160.0
    assert clock.time_of(ProgressBar("a", 0, 9, 0.0), 200.0) == 200.0
    assert clock.time_of(ProgressBar("b", 3, 9, 30.0), 300.0) == 300.0
    assert clock.time_of(ProgressBar("b", 4, 9, 40.0), 300.0) == 310.0


def test_a_bar_fits_into_a_terminal() -> None:
    assert read_bar("x" * 600 + ":  22%|##        | 5/22 [03:00<13:00, 42.84s/it]") is None


EXPECTED = {"starting": 21.0, "loading-weights": 153.0, "profiling": 178.0, "serving": 16.0}


def test_every_phase_has_something_that_is_awaited() -> None:
    assert AWAITED.keys() == set(Phase)


def test_before_the_first_line_the_whole_boot_lies_ahead() -> None:
    found = estimate(None, 2.0, 0.0, EXPECTED)
    assert found.eta is None
    assert found.sentence() == "start for 2 s; waiting for the engine's first line"


def test_within_its_time_a_phase_ends_when_it_is_expected_to() -> None:
    found = estimate(Phase.LOADING_WEIGHTS, 74.0, 21.0, EXPECTED)
    assert (found.phase_for, found.expected, found.eta) == (53.0, 153.0, 100.0 + 178.0 + 16.0)
    assert found.sentence() == (
        "loading-weights for 53 s of about 153, ready in about 4:54; waiting for weights from the disk"
    )


def test_past_its_time_nobody_can_tell() -> None:
    assert estimate(Phase.LOADING_WEIGHTS, 400.0, 21.0, EXPECTED).eta is None


def test_a_bar_knows_better_than_the_expectation() -> None:
    bar = ProgressCounter("shards", 20, 131, began=30.0, at=230.0)
    found = estimate(Phase.LOADING_WEIGHTS, 230.0, 21.0, EXPECTED, bar)
    assert found.eta == pytest.approx(10.0 * 111 + 178.0 + 16.0)
    assert "shards 20/131, ready in about 21:44" in found.sentence()


def test_a_bar_that_has_not_moved_tells_nothing() -> None:
    assert ProgressCounter("shards", 0, 131, 30.0, 30.0).left(40.0) is None
    assert ProgressCounter("shards", 131, 131, 30.0, 160.0).left(170.0) == 0.0


def test_a_phase_that_the_recipe_does_not_name_has_no_end() -> None:
    assert estimate(Phase.COMPILING, 200.0, 190.0, EXPECTED).eta is None


@pytest.mark.parametrize(("seconds", "text"), [(9.6, "0:10"), (454.0, "7:34"), (4440.0, "1:14:00")])
def test_times_as_people_read_them(seconds: float, text: str) -> None:
    assert minutes(seconds) == text
