from gb300serve.simulator.engine.sglang.deaths import shutdown_script
from tests.support.sglang import boot_script
from tests.support.simulated import STARTED, boot_of, exit_code


def test_a_stop_is_no_failure() -> None:
    stop = shutdown_script(STARTED, 400.0)
    assert boot_of((*boot_script(), *stop)).result().state == "stopped"
    assert exit_code(stop) == 0
