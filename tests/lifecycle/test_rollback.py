"""Which run is returned to, and `rollback` as a whole against a backend in memory."""

from dataclasses import replace

import pytest

from gb300serve.core.errors import Action, BootError, MachineError
from gb300serve.journal.runs import MeasuredTimes, RunHistory
from gb300serve.lifecycle.backend import LABEL_PLAN
from gb300serve.lifecycle.execute import LaunchResult, execute
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.reconcile import plan_launch
from gb300serve.lifecycle.rollback import (
    NoLaneToReturnError,
    NothingToReturnToError,
    costs,
    kept_container,
    target,
)
from gb300serve.lifecycle.tools import Tools
from tests.support.entries import V14 as V14_SERVED
from tests.support.entries import entry, record
from tests.support.fake_backend import FakeBackend, Script
from tests.support.fake_http import BackendHttp
from tests.support.launches import FAILS, SERVES, STRANGER, backend, contained, container, launch

V13 = replace(launch("v13"), plan=contained(launch("v13").plan, restart="unless-stopped"))
V14 = replace(launch("v14"), plan=contained(launch("v14").plan, restart="unless-stopped"))
LANE = "deepseek-v4.1-flash"
RUNS = RunHistory((), (record("v12"), record("v13", 1.0), record("v14", 2.0)))


def test_back_to_the_last_good_run_of_another_plan() -> None:
    live = container(launch("v14"), labels=launch("v14").labels | {LABEL_PLAN: "plan-v14"})
    assert target(None, None, "docker", (live, STRANGER), RUNS).release == "v13"
    assert target(LANE, "v12", "docker", (live,), RUNS).release == "v12"
    back = container(launch("v13"), labels=launch("v13").labels | {LABEL_PLAN: "plan-v13"})
    assert target(LANE, None, "docker", (back,), RUNS).release == "v14", "a second time: there and back"


def test_what_served_last_counts_when_nothing_runs() -> None:
    ended = entry(verb="down", result="stopped", before=(V14_SERVED,), after=())
    assert target(None, None, "docker", (), replace(RUNS, entries=(ended,))).release == "v13"
    assert target(None, None, "docker", (), replace(RUNS, entries=(entry(),))).release == "v13"


def test_never_a_guess() -> None:
    with pytest.raises(NoLaneToReturnError, match="no lane is running, and no run is recorded"):
        target(None, None, "docker", (), RUNS)
    two = (container(V14), replace(container(V14), id="g", labels=V14.labels | {"gb300serve.lane": "glm"}))
    with pytest.raises(NoLaneToReturnError, match=r"several lanes are running: deepseek-v4\.1-flash, glm"):
        target(None, None, "docker", two, RUNS)
    with pytest.raises(NothingToReturnToError) as caught:
        target("glm", None, "docker", (), RUNS)
    assert caught.value.exit_code == MachineError.exit_code
    said = "there is nothing to roll back to: no run of another release of glm became READY here"
    assert caught.value.message == said
    with pytest.raises(NothingToReturnToError) as caught:
        target("glm", None, "sim", (), RUNS)
    assert caught.value.suggest == (
        Action("journal", "see what was launched", ref=""),
        Action("up", "launch a release by name", ("--replace",), ref="REF"),
    )
    with pytest.raises(NothingToReturnToError, match=r"no run of deepseek-v4\.1-flash/v9"):
        target(LANE, "v9", "docker", (), RUNS)


def test_the_container_of_the_run_goes_before_others_of_its_plan() -> None:
    labels = V13.labels | {LABEL_PLAN: "plan-v13"}
    own = container(V13, id="id-v13", labels=labels, state="exited", finished_at=1.0, name="a-kept")
    later = replace(own, id="later", finished_at=2.0)
    failed = replace(own, id="failed", name="a-failed-20261129T195003Z", finished_at=3.0)
    wanted = record("v13")
    assert kept_container(wanted, (later, own, failed)) == own
    assert kept_container(replace(wanted, container=None), (own, later, failed)) == later
    assert kept_container(wanted, (failed, STRANGER)) is None


def test_costs() -> None:
    kept = container(V13, name="dsv41-vllm-kept-v13-20261129T195003Z")
    loaded = record("v13", receipts=({"name": "tuning", "values": {"loaded": 210, "missed": False}},))
    assert tuple(costs(loaded, kept, MeasuredTimes(2, {}, 281.4), simulated=False)) == (
        "back to deepseek-v4.1-flash/v13, READY on 2026-11-29 (run run-v13)",
        "its container is kept as dsv41-vllm-kept-v13-20261129T195003Z and is restarted",
        "expected time: 281 s until READY, the median of 2 such boots",
        "kernels: that run loaded 210 configurations; no tuning unless the cache has changed since",
    )
    tuned = record("v13", receipts=({"name": "tuning", "values": {"loaded": 0, "missed": True}},))
    assert tuple(costs(tuned, None, MeasuredTimes(), simulated=True))[1:] == (
        "none of its containers can be restarted: a fresh one is created",
        "expected time: unknown; on the Station 4 to 5 minutes for a kept container, 8 for a fresh one",
        "kernels: that run tuned and saved them; they are loaded unless the cache has changed since",
    )
    assert tuple(costs(record("v13"), kept, MeasuredTimes(1, {}, 5.0), simulated=True))[2:] == (
        "expected time: 5 s of the simulated Station until READY, the median of 1 such boots",
        "kernels: the log of that run does not mention the tuning cache",
    )


def back_to(of: Launch, station: FakeBackend) -> LaunchResult:
    tools = Tools(station, BackendHttp(station), station.clock)
    return execute(plan_launch(of, tools, replace=True), of, tools, names_back=True)


def replaced(script: Script = SERVES) -> FakeBackend:
    """v13 was replaced by v14, which serves."""
    station = backend(script)
    for of in (V13, V14):
        tools = Tools(station, BackendHttp(station), station.clock)
        execute(plan_launch(of, tools, replace=True), of, tools)
    return station


def standing(station: FakeBackend) -> dict[str, tuple[str, str, str]]:
    return {
        each.labels["gb300serve.release"]: (each.name, each.state, each.restart_policy) for each in station.containers()
    }


def test_the_kept_container_serves_again_under_its_own_name() -> None:
    station = replaced()
    (kept,) = (each for each in station.containers() if each.labels == V13.labels)
    assert back_to(V13, station).container.id == kept.id
    found = standing(station)
    assert found["v13"] == ("dsv41-vllm", "running", "unless-stopped")
    assert found["v14"][1:] == ("exited", "no")
    assert found["v14"][0].startswith("dsv41-vllm-kept-v14-2026")
    back_to(V14, station)
    assert standing(station)["v14"] == ("dsv41-vllm", "running", "unless-stopped")


def test_when_it_fails_both_get_their_names_and_policies_back() -> None:
    station = replaced()
    before = standing(station)
    (kept,) = (each for each in station.containers() if each.labels == V13.labels)
    station.add(kept, FAILS, V13.plan)
    with pytest.raises(BootError) as caught:
        back_to(V13, station)
    assert caught.value.exit_code == 8
    assert before["v13"][0] in str(caught.value.suggest)
    assert "dsv41-vllm was put back and boots again" in caught.value.suggest
    assert standing(station) == before


def test_a_fresh_container_that_fails_is_set_aside() -> None:
    station = replaced()
    (kept,) = (each for each in station.containers() if each.labels == V13.labels)
    station.remove(kept.id)
    station.scripts["deepseek-v4.1-flash/v13"] = FAILS
    with pytest.raises(BootError):
        back_to(V13, station)
    found = standing(station)
    assert found["v14"] == ("dsv41-vllm", "running", "unless-stopped")
    assert found["v13"][0].startswith("dsv41-vllm-failed-")
