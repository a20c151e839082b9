from dataclasses import replace

import pytest

from gb300serve.simulator.engine.settings import SimulatorEnvironmentError
from gb300serve.simulator.engine.sglang.deaths import shutdown_script
from tests.support.sglang import ENVIRONMENT, boot_script
from tests.support.simulated import STARTED, boot_of, exit_code


@pytest.mark.parametrize(
    ("fault", "reason", "phase", "code"),
    [
        ("host-oom", "killed", "loading-weights", 1),
        ("gpu-oom", "gpu-oom", "loading-weights", 137),
        ("port-taken", "port-in-use", "serving", 137),
        ("crash-after-ready", "killed", "serving", 137),
    ],
)
def test_each_dies_in_its_own_words(fault: str, reason: str, phase: str, code: int) -> None:
    script = boot_script(environment=replace(ENVIRONMENT, fault=fault))
    diagnosis = boot_of(script).result()
    assert (diagnosis.state, diagnosis.reason, diagnosis.phase, exit_code(script)) == ("failed", reason, phase, code)


def test_a_fault_without_an_ending_boots() -> None:
    assert boot_of(boot_script(environment=replace(ENVIRONMENT, fault="slow-disk"))).result().state == "ready"


def test_a_rehearsal_of_the_other_engine_is_refused() -> None:
    with pytest.raises(
        SimulatorEnvironmentError, match="sglang cannot rehearse 'hook-failed'; expected one of host-oom, gpu-oom"
    ):
        boot_script(environment=replace(ENVIRONMENT, fault="hook-failed"))


def test_a_stop_is_no_failure() -> None:
    stop = shutdown_script(STARTED, 400.0)
    assert boot_of((*boot_script(), *stop)).result().state == "stopped"
    assert exit_code(stop) == 0
