from gb300serve.probe.metrics import samples
from gb300serve.simulator.engine.service import Counters
from gb300serve.simulator.engine.settings import estimate_memory
from gb300serve.simulator.engine.sglang.http import metrics
from tests.support.sglang import settings


def test_series_have_the_names_of_the_engine_and_no_start_of_a_process() -> None:
    found = settings()
    counters = Counters(running=3, waiting=2, prompt_tokens=70, generation_tokens=9)
    shown = {each.name: each.value for each in samples(metrics(found, estimate_memory(found), counters))}
    assert {name for name in shown if not name.startswith("sglang:")} == set()
    assert [shown[f"sglang:{name}"] for name in ("num_running_reqs", "num_queue_reqs", "generation_tokens_total")] == [
        3.0,
        2.0,
        9.0,
    ]
