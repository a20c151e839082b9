import re
from dataclasses import replace

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.values import Missing
from gb300serve.preflight.run import CHECKS, FAMILIES, MachineUnfitError, blocking, judge
from tests.support.hosts import host, launched, station


def test_a_station_that_is_ready() -> None:
    assert judge(station()) == ()
    assert judge(launched()) == ()


def test_a_finding_names_its_check_and_its_fact() -> None:
    (found,) = judge(station(docker=Missing("no Docker Engine answers at unix:///x: No such file")))
    assert found == Diagnostic(
        "PRE010",
        "docker-not-there",
        "error",
        "no Docker Engine answers at unix:///x: No such file",
        "start it, join the group of its socket, or name another one (site file: docker; DOCKER_HOST)",
        path="docker",
    )


def test_what_blocks_and_how_it_is_said() -> None:
    found = judge(launched(host(docker=Missing("gone"), gpus=Missing("no tool")), secrets=()))
    assert [one.code for one in found] == ["PRE001", "PRE010"]
    assert [one.code for one in blocking(found)] == ["PRE010"]
    error = MachineUnfitError("v14", "gb300serve doctor v14", found)
    assert (error.exit_code, error.message, error.hint) == (
        6,
        "one check blocks v14 on this machine",
        "gb300serve doctor v14",
    )
    assert error.diagnostics == blocking(found)
    twice = (*found, replace(blocking(found)[0], code="PRE999"))
    assert MachineUnfitError("v14", "gb300serve doctor v14", twice).message == "2 checks block v14 on this machine"


def test_every_family_is_there_and_every_code_is_of_this_kind() -> None:
    assert {rule.check.__module__ for rule in CHECKS} == {family.__name__ for family in FAMILIES}
    assert all(re.fullmatch(r"PRE\d{3}", rule.code) for rule in CHECKS)
