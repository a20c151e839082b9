from gb300serve.simulator.engine.vllm.deaths import shutdown_script
from tests.support.golden import Golden
from tests.support.simulated import STARTED, boot_of, boot_script, shown


def test_the_whole_stop(golden: Golden) -> None:
    golden("shutdown.log", shown(shutdown_script(STARTED, 600.0)))


def test_the_boot_machine_calls_it_stopped() -> None:
    events = (*boot_script(), *shutdown_script(STARTED, 600.0))
    assert boot_of(events).result().state == "stopped"
