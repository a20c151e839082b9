from gb300serve.boot.machine import BootMachine
from gb300serve.fit.remedy import Reading, remedies
from tests.support.simulated import boot_script, changed, said

SHORT = said(boot_script(changed("--cpu-offload-gb", "55")))


def test_a_log_is_advised_on_with_numbers() -> None:
    reading, machine = Reading(), BootMachine()
    for line in SHORT:
        assert reading.feed(line) == machine.feed(line)
    plain, found = machine.result(), reading.result()
    assert found.advice == (*plain.advice, *remedies(plain, reading.heard))
    assert [one for one in found.advice if one.startswith("cpu_offload_gb 57 moves 61.17 GiB and fits")]
    assert (found.reason, found.values, found.evidence) == (plain.reason, plain.values, plain.evidence)


def test_nothing_is_added_to_a_boot_that_serves() -> None:
    reading = Reading()
    for line in said(boot_script()):
        reading.feed(line)
    assert (reading.result().state, reading.result().advice) == ("ready", ())
