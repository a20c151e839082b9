from dataclasses import replace
from typing import get_args

import pytest

from gb300serve.core.values import EngineName
from gb300serve.simulator.engine.faults import FAULTS
from gb300serve.simulator.engine.registry import ENGINES, boot_script, parse_settings
from gb300serve.simulator.engine.settings import SimulatorEnvironmentError, read_environment
from tests.support.sglang import ENVIRONMENT, WORDS
from tests.support.simulated import DAY_ZERO, STARTED, V14, boot_of, exit_code


@pytest.mark.parametrize(("engine", "words"), [("vllm", V14), ("sglang", WORDS)])
def test_each_boots_and_meets_a_port_that_is_taken(engine: EngineName, words: tuple[str, ...]) -> None:
    settings = parse_settings(words, replace(DAY_ZERO if engine == "vllm" else ENVIRONMENT, engine=engine))
    machine = boot_of(boot_script(settings, None, STARTED))
    assert (machine.result().state, machine.engine) == ("ready", engine)
    script = ENGINES[engine].endings["port-taken"](settings, STARTED, 0.0)
    assert exit_code(script) == (1 if engine == "vllm" else 137)
    assert boot_of(script).result().reason == "port-in-use"


def test_every_engine_has_a_row_and_its_faults_exist() -> None:
    assert set(ENGINES) == set(get_args(EngineName))
    for engine in ENGINES.values():
        assert set(engine.faults) <= FAULTS.keys()
        assert set(engine.endings) <= set(engine.faults)


def test_the_environment_names_the_engine() -> None:
    assert read_environment({}).engine == "vllm"
    assert read_environment({"GB300SERVE_SIM_ENGINE": "sglang"}).engine == "sglang"
    with pytest.raises(SimulatorEnvironmentError, match="expected vllm or sglang"):
        read_environment({"GB300SERVE_SIM_ENGINE": "trt"})
