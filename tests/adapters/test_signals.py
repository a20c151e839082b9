import os
import signal

import pytest

from gb300serve.adapters.system import once, uninterrupted


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_interrupts_and_the_next_ones_do_nothing(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    interrupted = 0
    with once():
        try:
            send(number)
        except KeyboardInterrupt:
            interrupted += 1
            send(number)
            send(number)
    assert interrupted == 1
    assert signal.getsignal(number) is before


def test_none_is_heard_while_things_are_put_in_order() -> None:
    with once():
        with uninterrupted():
            send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
        with uninterrupted():
            send(signal.SIGINT)
        send(signal.SIGINT)


def test_programs_that_are_started_meanwhile_hear_them() -> None:
    with uninterrupted():
        assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
