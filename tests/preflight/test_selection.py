from gb300serve.preflight.subject import is_meant, principal, selected, words
from tests.support.hosts import DISPLAY, GB300

BOTH = (DISPLAY, GB300)


def test_what_a_launch_gets() -> None:
    assert selected(BOTH, None) == ()
    assert selected(BOTH, "all") == BOTH
    assert selected(BOTH, "1") == BOTH
    assert selected(BOTH, "device=GPU-300") == (GB300,)
    assert selected(BOTH, "device=1,0") == (GB300, DISPLAY)
    assert selected(BOTH, "device=GPU-9") == ()


def test_words_and_devices() -> None:
    assert (words("all"), words("2"), words("device=a,b")) == ((), (), ("a", "b"))
    assert is_meant(GB300, "GPU-3")
    assert not is_meant(GB300, "0")


def test_the_large_one() -> None:
    assert principal(BOTH) == (GB300,)
    assert principal(()) == ()
