from dataclasses import replace

import pytest

from gb300serve.simulator.engine.faults import FAULTS
from gb300serve.simulator.engine.settings import SurroundingsError
from gb300serve.simulator.engine.sglang.deaths import REHEARSED
from tests.support.sglang import SURROUNDINGS, boot_script
from tests.support.simulated import boot_of, exit_code


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
    script = boot_script(surroundings=replace(SURROUNDINGS, fault=fault))
    diagnosis = boot_of(script).result()
    assert (diagnosis.state, diagnosis.reason, diagnosis.phase, exit_code(script)) == ("failed", reason, phase, code)


def test_every_ending_is_a_rehearsal() -> None:
    assert set(REHEARSED) <= FAULTS.keys()
    assert boot_of(boot_script(surroundings=replace(SURROUNDINGS, fault="slow-disk"))).result().state == "ready"


def test_a_rehearsal_of_the_other_engine_is_refused() -> None:
    with pytest.raises(SurroundingsError, match="no rehearsal of hook-failed for sglang; there are host-oom, gpu-oom"):
        boot_script(surroundings=replace(SURROUNDINGS, fault="hook-failed"))
