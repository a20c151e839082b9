import pytest

from gb300serve.boot.liveness import Judgement, LivenessMonitor, LivenessSample


def pulse(*samples: LivenessSample) -> LivenessMonitor:
    found = LivenessMonitor()
    for sample in samples:
        found.take(sample)
    return found


def judged(
    found: LivenessMonitor, *, tuning: bool = False, phase_for: float = 100.0, expected: float | None = 153.0
) -> Judgement:
    return found.judge(tuning=tuning, phase_for=phase_for, expected=expected)


def after_silence(cpu: float | None, gpu: float | None = None, silent: float = 300.0) -> LivenessMonitor:
    """Something was said at 100 s; since then the container has used `cpu` seconds."""
    start = None if cpu is None else 90.0
    end = None if cpu is None else 90.0 + cpu
    return pulse(LivenessSample(100.0, 100.0, 5, start, gpu), LivenessSample(100.0 + silent, 100.0, 5, end, gpu))


def test_before_anything_is_known_it_works() -> None:
    assert judged(LivenessMonitor()) == Judgement("working", ("it has just started",))


def test_what_says_something_works() -> None:
    assert judged(pulse(LivenessSample(100.0, 99.0, 3))) == Judgement("working", ())


def test_silence_alone_is_no_verdict() -> None:
    assert judged(after_silence(None)) == Judgement("working", ("nothing new in the log for 300 s",), active=False)


def test_silent_and_idle_is_stuck() -> None:
    because = ("nothing new in the log for 300 s", "no CPU time used", "GPU idle")
    assert judged(after_silence(0.0, gpu=0.0)) == Judgement("stuck", because, active=False)
    assert judged(after_silence(0.0)).health == "stuck"


@pytest.mark.parametrize(("cpu", "gpu"), [(270.0, None), (270.0, 0.0), (0.0, 0.9), (None, 0.9)])
def test_silent_and_busy_is_not_stuck(cpu: float | None, gpu: float | None) -> None:
    found = judged(after_silence(cpu, gpu))
    assert (found.health, found.active) == ("working", True)


def test_a_short_silence_is_waited_for() -> None:
    assert judged(after_silence(0.0, silent=90.0)).health == "working"


@pytest.mark.parametrize(("phase_for", "health"), [(300.0, "working"), (310.0, "slow")])
def test_twice_the_expected_time_is_slow(phase_for: float, health: str) -> None:
    assert judged(pulse(LivenessSample(400.0, 399.0, 3)), phase_for=phase_for).health == health


def test_a_short_phase_is_not_called_slow_for_a_minute() -> None:
    assert judged(pulse(LivenessSample(59.0, 58.0, 3)), phase_for=59.0, expected=7.0).health == "working"


def test_without_an_expectation_nothing_is_slow() -> None:
    assert judged(pulse(LivenessSample(9000.0, 8999.0, 3)), phase_for=8000.0, expected=None).health == "working"


def test_tuning_is_tuning_while_it_computes_and_stuck_when_it_does_not() -> None:
    assert judged(after_silence(290.0), tuning=True).health == "tuning"
    assert judged(after_silence(None), tuning=True).health == "tuning"
    assert judged(after_silence(0.0, gpu=0.0), tuning=True).health == "stuck"


def test_a_bar_that_moves_is_a_sign_although_the_log_is_silent() -> None:
    moving = pulse(
        LivenessSample(100.0, 100.0, 5, 90.0),
        LivenessSample(380.0, 100.0, 6, 90.0),
        LivenessSample(400.0, 100.0, 6, 90.0),
    )
    assert judged(moving, tuning=True).health == "tuning"


def test_a_container_that_was_started_again_has_no_past() -> None:
    again = pulse(LivenessSample(100.0, 100.0, 5, 90.0), LivenessSample(400.0, 100.0, 5, 1.0, None, restarts=1))
    found = judged(again)
    assert (found.health, found.because) == ("working", ("nothing new in the log for 300 s", "restarted 1 times"))


def test_many_samples_a_minute_still_reach_back_a_window() -> None:
    idle = pulse(*(LivenessSample(100.0 + tick / 2, 100.0, 5, 90.0) for tick in range(600)))
    assert judged(idle).health == "stuck"
