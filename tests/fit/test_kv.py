from gb300serve.fit.checkpoint import checkpoints
from gb300serve.fit.memory import longest_context, needed_gib, tokens_in

CACHE = checkpoints()[0].kv_cache


def test_both_measured_pairs_come_back() -> None:
    assert round(needed_gib(CACHE, 1_048_576), 1) == 2.2
    assert round(needed_gib(CACHE, 123_264), 2) == 0.65
    assert longest_context(CACHE, 0.65) == 123_264


def test_a_pool_is_counted_in_whole_requests() -> None:
    assert tokens_in(CACHE, 4.88, 1_048_576) == 2_325_990
    assert tokens_in(CACHE, needed_gib(CACHE, 4096), 4096) == 4096


def test_nothing_fits_below_one_block() -> None:
    assert longest_context(CACHE, 0.4435) is None
    assert longest_context(CACHE, -3.0) is None
