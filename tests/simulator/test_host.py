import pytest

from gb300serve.core.values import Missing
from gb300serve.fit.hardware import GB300
from gb300serve.host.collect import host_facts
from gb300serve.host.facts import Directory, ListeningSocket
from gb300serve.host.linux import Limit
from gb300serve.preflight.run import judge
from gb300serve.preflight.subject import PreflightSubject
from gb300serve.simulator.host import GB300_UUID, INFO, StationMachine
from tests.support.fake_machine import FakeEngine

GIB = 1024**3


@pytest.fixture
def machine() -> StationMachine:
    return StationMachine(lambda port: ListeningSocket(port, "::") if port == 1 else None)


def test_a_station_as_it_is_described(machine: StationMachine) -> None:
    facts = host_facts(machine, FakeEngine(INFO), Directory("/state"))
    assert isinstance(facts.gpus, tuple)
    display, gb300 = facts.gpus
    assert (display.name, gb300.name) == ("NVIDIA RTX PRO 4000 Blackwell SFF Edition", "NVIDIA GB300")
    assert (gb300.uuid, gb300.compute_capability, gb300.power_limit) == (GB300_UUID, "10.3", 1300.0)
    assert gb300.memory is not None
    assert gb300.cuda_memory is not None
    assert gb300.memory / GIB == GB300.visible_gib
    assert abs(gb300.cuda_memory / GIB - GB300.total_gib) < 0.001
    assert not isinstance(facts.memory, Missing)
    assert (round(facts.memory.total / GIB, 1), round(facts.memory.available / GIB)) == (494.5, 466)
    assert (facts.processes, facts.memory_mode, facts.hbm_page_cache) == ((), "driver", 0)
    assert facts.memlock == Limit(-1, -1)
    assert not isinstance(facts.docker, Missing)
    assert (facts.docker.architecture, facts.docker.nvidia) == ("arm64", True)
    assert judge(PreflightSubject(facts)) == ()


def test_it_has_every_file_and_the_ports_of_this_machine(machine: StationMachine) -> None:
    not_asked = Missing("the simulated Station has every file that a plan names", asked=False)
    answers = [
        machine.entry("/a"),
        machine.names("/a"),
        machine.read("/a"),
        machine.begin("/a", 1),
        machine.space("/a"),
        machine.sha256("/a"),
        machine.output(("nvidia-smi", "-L")),
    ]
    assert answers == [not_asked] * 7
    assert (machine.listener(1), machine.listener(2)) == (ListeningSocket(1, "::"), None)
    assert machine.program("nvidia-container-runtime-hook") is None
