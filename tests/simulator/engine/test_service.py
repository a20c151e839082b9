from gb300serve.simulator.engine.service import Counters, Histogram, count_drafted_tokens, count_drafts
from tests.support.simulated import settings


def test_drafts_follow_the_schedule() -> None:
    found = settings()
    alone, crowded = count_drafted_tokens(found, 1000, 1), count_drafted_tokens(found, 1000, 16)
    assert (alone[1] / alone[0], crowded[1] / crowded[0]) == (5, 1)
    assert (len(alone[2]), len(crowded[2])) == (5, 1)
    # Every draft ends in one token of the model's own.
    assert abs(sum(alone[2]) + alone[0] - 1000) <= 5
    assert count_drafted_tokens(found, 0, 1) == (0, 0, [])


def test_accepted_positions_add_up() -> None:
    counters = Counters(running=16)
    count_drafts(counters, settings(), 100)
    counters.running = 1
    count_drafts(counters, settings(), 100)
    assert len(counters.accepted) == 5
    assert counters.accepted == sorted(counters.accepted, reverse=True)


def test_a_histogram_is_cumulative() -> None:
    seen = Histogram()
    for value in (0.004, 0.04, 100.0):
        seen.observe(value)
    assert (seen.number, seen.counts[:4], seen.counts[-1]) == (3, [0, 1, 1, 2], 3)
