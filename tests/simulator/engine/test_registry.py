from dataclasses import replace

import pytest

from gb300serve.core.values import EngineName
from gb300serve.simulator.engine.registry import KINDS
from gb300serve.simulator.engine.script import EventTimeline
from gb300serve.simulator.engine.settings import SurroundingsError, surroundings_of
from tests.support.sglang import SURROUNDINGS, WORDS
from tests.support.simulated import DAY_ZERO, STARTED, V14, boot_of, exit_code


@pytest.mark.parametrize(("engine", "words"), [("vllm", V14), ("sglang", WORDS)])
def test_each_boots_and_meets_a_port_that_is_taken(engine: EngineName, words: tuple[str, ...]) -> None:
    kind = KINDS[engine]
    found = kind.settings(words, replace(DAY_ZERO if engine == "vllm" else SURROUNDINGS, engine=engine))
    machine = boot_of(kind.script(found, None, STARTED))
    assert (machine.result().state, machine.engine) == ("ready", engine)
    tape = EventTimeline(STARTED)
    kind.port_taken(tape, found)
    assert exit_code(tape.script) == (1 if engine == "vllm" else 137)
    assert boot_of(tape.script).result().reason == "port-in-use"


def test_the_environment_says_which() -> None:
    assert surroundings_of({}).engine == "vllm"
    assert surroundings_of({"GB300SERVE_SIM_ENGINE": "sglang"}).engine == "sglang"
    with pytest.raises(SurroundingsError, match="write sglang or vllm"):
        surroundings_of({"GB300SERVE_SIM_ENGINE": "trt"})
