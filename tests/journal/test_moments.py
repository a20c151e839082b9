from gb300serve.journal.journal import read, stamp, written
from tests.support.fake_clock import START


def test_moments_are_utc_and_read_back() -> None:
    assert written(START + 0.25) == "2026-11-29T19:50:03.250Z"
    assert read("2026-11-29T19:50:03.250Z") == START + 0.25
    assert stamp(START) == "20261129T195003Z"


def test_what_is_no_moment_is_none() -> None:
    assert [read(value) for value in (None, 3, "soon", "")] == [None] * 4
