from dataclasses import replace

import pytest

from gb300serve.boot.signals.model import EngineName
from gb300serve.simulator.engine.registry import ENGINES
from gb300serve.simulator.engine.script import EventTimeline
from gb300serve.simulator.engine.settings import SimulatorEnvironmentError, read_environment
from tests.support.sglang import ENVIRONMENT, WORDS
from tests.support.simulated import DAY_ZERO, STARTED, V14, boot_of, exit_code


@pytest.mark.parametrize(("engine", "words"), [("vllm", V14), ("sglang", WORDS)])
def test_each_boots_and_meets_a_port_that_is_taken(engine: EngineName, words: tuple[str, ...]) -> None:
    kind = ENGINES[engine]
    found = kind.settings(words, replace(DAY_ZERO if engine == "vllm" else ENVIRONMENT, engine=engine))
    machine = boot_of(kind.script(found, None, STARTED))
    assert (machine.result().state, machine.engine) == ("ready", engine)
    timeline = EventTimeline(STARTED)
    kind.port_taken(timeline, found)
    assert exit_code(timeline.script) == (1 if engine == "vllm" else 137)
    assert boot_of(timeline.script).result().reason == "port-in-use"


def test_the_environment_says_which() -> None:
    assert read_environment({}).engine == "vllm"
    assert read_environment({"GB300SERVE_SIM_ENGINE": "sglang"}).engine == "sglang"
    with pytest.raises(SimulatorEnvironmentError, match="there are vllm and sglang"):
        read_environment({"GB300SERVE_SIM_ENGINE": "trt"})
