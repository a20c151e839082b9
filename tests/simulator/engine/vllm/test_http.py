from gb300serve.simulator.engine.service import Counters
from gb300serve.simulator.engine.settings import SimulatorEnvironment, estimate_memory
from gb300serve.simulator.engine.vllm.http import metrics
from tests.support.golden import Golden
from tests.support.simulated import V14, changed, settings


def test_the_whole_text_at_the_start(golden: Golden) -> None:
    found = settings()
    golden("metrics.txt", metrics(found, estimate_memory(found), Counters(), 1796000000.5))


def test_without_a_drafter_there_are_no_draft_metrics() -> None:
    for words, environment in (
        (changed("--speculative-config"), SimulatorEnvironment()),
        (("/model",), SimulatorEnvironment(model="")),
    ):
        found = settings(words, environment)
        assert "spec_decode" not in metrics(found, estimate_memory(found), Counters(), 0.0)
    assert "spec_decode" in metrics(settings(V14), estimate_memory(settings(V14)), Counters(), 0.0)
