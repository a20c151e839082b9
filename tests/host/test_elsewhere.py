from gb300serve.host.collect import Elsewhere, Silent, host_facts
from gb300serve.host.facts import HostFacts
from gb300serve.host.missing import Missing


def test_nothing_of_this_machine_is_taken_for_the_other_one() -> None:
    not_asked, no_docker = Missing("over there", asked=False), Missing("no Docker")
    facts = host_facts(Elsewhere("over there"), Silent("no Docker"), Missing("x"))
    assert facts == HostFacts(
        docker=no_docker,
        gpus=not_asked,
        processes=not_asked,
        memory_mode=not_asked,
        hbm_page_cache=not_asked,
        memory=not_asked,
        memlock=not_asked,
        state=Missing("x"),
    )
    machine = Elsewhere("over there")
    assert [machine.begin("/a", 1), machine.entry("/a"), machine.sha256("/a"), machine.heard(1)] == [not_asked] * 4
    assert Silent("no Docker").image("a") == no_docker
    assert Silent("no Docker").containers() == no_docker
