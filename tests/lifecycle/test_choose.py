from dataclasses import replace

import pytest

from gb300serve.lifecycle.status import SeveralLanesError, choose
from tests.support.fake_clock import START
from tests.support.launches import STRANGER, container, launch, plan

LANE = "deepseek-v4.1-flash"
V13, V14 = launch("v13"), launch("v14")
ENDED = {"state": "exited", "finished_at": START}
GLM = container(replace(V14, plan=replace(plan(), lane="glm", recipe="glm/v1", release="v1")), name="glm", id="id-glm")


def test_without_a_ref_only_a_live_lane_is_meant() -> None:
    assert choose("down", (), None, None) is None
    assert choose("down", (STRANGER, container(V13, **ENDED)), None, None) is None
    assert choose("down", (STRANGER, container(V13, **ENDED), container(V14)), None, None) == container(V14)


def test_several_live_lanes_are_listed() -> None:
    with pytest.raises(SeveralLanesError) as caught:
        choose("down", (container(V14), GLM), None, None)
    assert caught.value.exit_code == 2
    assert caught.value.message == (
        "several lanes are running: deepseek-v4.1-flash/v14 (container dsv41-vllm), glm/v1 (container glm)"
    )
    assert caught.value.hint == "gb300serve down deepseek-v4.1-flash/v14; gb300serve down glm/v1"


def test_a_release_is_found_running_or_not() -> None:
    kept = container(V13, **ENDED)
    assert choose("logs", (container(V14), GLM, kept), LANE, "v13") == kept
    assert choose("logs", (container(V14), GLM, kept), LANE, None) == container(V14)
    assert choose("logs", (container(V14), GLM), LANE, "v12") is None


def test_a_changed_launch_answers_to_its_release() -> None:
    changed = replace(V14, plan=replace(plan(), recipe=f"{LANE}/v14+set"))
    assert choose("down", (container(changed),), LANE, "v14") == container(changed)


def test_the_last_that_ran_is_meant_and_failed_ones_only_without_another() -> None:
    older = container(V14, **ENDED | {"finished_at": START - 100.0}, id="older")
    failed = container(V14, **ENDED, id="failed", name="dsv41-vllm-failed-20261129T195003Z")
    assert choose("logs", (failed, older), LANE, "v14") == older
    assert choose("logs", (failed,), LANE, "v14") == failed
