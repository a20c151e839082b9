from gb300serve.simulator.engine.service import Counters, Histogram, count_drafted_tokens, count_drafts, metrics
from gb300serve.simulator.engine.settings import SimulatorEnvironment, estimate_memory
from tests.support.golden import Golden
from tests.support.simulated import V14, changed, settings


def test_the_whole_text_at_the_start(golden: Golden) -> None:
    found = settings()
    golden("metrics.txt", metrics(found, estimate_memory(found), Counters(), 1796000000.5))


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


def test_without_a_drafter_nothing_speaks_of_drafts() -> None:
    for words, environment in (
        (changed("--speculative-config"), SimulatorEnvironment()),
        (("/model",), SimulatorEnvironment(model="")),
    ):
        found = settings(words, environment)
        assert "spec_decode" not in metrics(found, estimate_memory(found), Counters(), 0.0)
    assert "spec_decode" in metrics(settings(V14), estimate_memory(settings(V14)), Counters(), 0.0)


def test_a_histogram_is_cumulative() -> None:
    seen = Histogram()
    for value in (0.004, 0.04, 100.0):
        seen.saw(value)
    assert (seen.number, seen.counts[:4], seen.counts[-1]) == (3, [0, 1, 1, 2], 3)
