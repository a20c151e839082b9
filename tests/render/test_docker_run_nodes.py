"""One model over several Stations, as the commands that are pasted on each of them."""

from pathlib import Path

import pytest

from gb300serve.render.docker_run import pinned, plan_document, shell
from tests.plan.test_compile import compiled
from tests.support.golden import Golden
from tests.support.shells import SHELLS, Shell
from tests.support.spread import ALL

PLACE = {"LEADER_ADDRESS": "10.0.0.1", "VLLM_HOST_IP": "10.0.0.9", "KEY": "k e y"}


@pytest.mark.parametrize("name", ALL)
def test_the_commands(name: str, tmp_path: Path, golden: Golden) -> None:
    golden(f"nodes-{name}.sh", shell(compiled(tmp_path, ALL[name])))


@pytest.mark.parametrize("pasted", [False, True])
@pytest.mark.parametrize("name", SHELLS)
def test_each_station_runs_its_own(name: str, pasted: bool, tmp_path: Path) -> None:
    run = Shell(name, tmp_path)
    for text in ALL.values():
        plan = compiled(tmp_path, text)
        leader, worker = plan_document(plan)["nodes"]
        for rank, role in (("0", leader), ("1", worker)):
            values = {**PLACE, "NODE_RANK": rank}
            wanted = [_filled(word, values) for word in role["argv"]]
            assert list(run.words(shell(plan), values, pasted=pasted)) == wanted


def _filled(word: str, values: dict[str, str]) -> str:
    for key, value in values.items():
        word = word.replace(f"${{{key}}}", value).replace(f"${{secret:{key}}}", value)
    return word


def test_nothing_runs_where_nobody_says_which_station_it_is(tmp_path: Path) -> None:
    plan = compiled(tmp_path, ALL["own"])
    assert Shell("sh", tmp_path).run(shell(plan), {**PLACE, "NODE_RANK": ""}).returncode != 0
    assert Shell("sh", tmp_path).words(pinned(plan), {**PLACE, "NODE_RANK": "2"}) == ()


def test_the_plan_says_how_many(tmp_path: Path) -> None:
    found = plan_document(compiled(tmp_path, ALL["ray"]))
    assert [(node["role"], node["count"]) for node in found["nodes"]] == [("leader", 1), ("worker", 2)]
    assert found["argv"] == found["nodes"][0]["argv"]
