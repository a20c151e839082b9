import time

from gb300serve.adapters.system import SystemClock


def test_it_is_the_time_of_day_and_sleep_takes_some() -> None:
    clock = SystemClock()
    before = clock.now()
    assert abs(before - time.time()) < 60
    clock.sleep(0.01)
    assert clock.now() - before >= 0.01
