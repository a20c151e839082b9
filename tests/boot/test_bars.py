from gb300serve.boot.progress import BarClock, ProgressBar, read_bar


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
