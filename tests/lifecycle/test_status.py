from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from gb300serve.core.errors import Action
from gb300serve.core.ports import Response
from gb300serve.journal.history import RunHistory
from gb300serve.journal.journal import RunningLane
from gb300serve.lifecycle.backend import Container, GpuHeld, LogLine
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.status import (
    LaneStatus,
    ServesWronglyError,
    SeveralLanesError,
    choose_container,
    lane_status,
    lanes,
    verify_serving,
)
from gb300serve.lifecycle.tools import Tools
from tests.support.entries import entry, record
from tests.support.fake_backend import FakeBackend, Script
from tests.support.fake_clock import START
from tests.support.fake_http import BackendHttp
from tests.support.launches import (
    BOOT,
    FAILS,
    IMAGE,
    KV_LINE,
    SERVES,
    SHUTDOWN,
    STRANGER,
    backend,
    container,
    launch,
    plan,
)

V14 = launch()
DEAD = (
    "(APIServer pid=1) ERROR 11-29 20:50:05 [core_client.py:600] [shutdown] MPClient: engine core exited unexpectedly; "
    "starting cleanup"
)
OVER: dict[str, object] = {"state": "exited", "finished_at": START}
NEVER: dict[str, object] = {"state": "created", "started_at": None}


class Served503(BackendHttp):
    def get(self, url: str, timeout: float, headers: Mapping[str, str] | None = None) -> Response:
        return Response(503, "") if url.endswith("/health") else super().get(url, timeout)


def station_with(script: Script, **changes: object) -> tuple[FakeBackend, Container]:
    station = backend()
    return station, station.add(container(V14, **changes), script, V14.plan)


def status(script: Script, known: tuple[Launch, ...] = (V14,), changes: dict[str, object] | None = None) -> LaneStatus:
    station, found = station_with(script, **changes or {})
    return lane_status(found, Tools(station, BackendHttp(station), station.clock), known)


def test_a_lane_that_serves() -> None:
    assert status(SERVES).as_json() == {
        "lane": "deepseek-v4.1-flash",
        "release": "v14",
        "on": "docker",
        "state": "ready",
        "phase": "serving",
        "container": "dsv41-vllm",
        "image": IMAGE,
        "since": "2026-11-29T18:50:03Z",
        "drift": [],
        "health": {
            "identity": "ours",
            "model": "dsv41-flash-uva",
            "max_model_len": 1048576,
            "requests_running": 0.0,
        },
    }


def test_a_lane_whose_recipe_is_unknown_is_asked_by_its_own_command() -> None:
    found = status(SERVES, known=())
    assert (found.state, found.release, found.drift) == ("ready", "v14", ())


def test_a_lane_that_boots() -> None:
    found = status(SERVES, changes={"started_at": START - 100.0})
    assert (found.state, found.phase) == ("booting", "loading-weights")
    assert found.health == {
        "identity": "unknown",
        "why": "http://127.0.0.1:30006/v1/models does not respond: connection refused",
    }


def test_a_lane_that_says_it_started_and_does_not_answer_is_degraded() -> None:
    found = status(replace(SERVES, ready_at=None))
    assert (found.state, found.phase) == ("degraded", "serving")


def test_an_engine_that_is_dead_behind_its_server_is_degraded() -> None:
    station, found = station_with(SERVES)
    seen = lane_status(found, Tools(station, Served503(station), station.clock), (V14,))
    assert seen.state == "degraded"
    assert seen.health["why"] == "/health does not return 200: the engine is dead or dying"


@pytest.mark.parametrize(
    ("script", "changes", "state", "phase"),
    [
        (Script((*BOOT, (900.0, SHUTDOWN[0]))), {"exit_code": 0}, "stopped", "serving"),
        (Script((*BOOT, (900.0, DEAD))), {"exit_code": 0}, "died", "serving"),
        (Script(BOOT), {"exit_code": 0}, "died", "serving"),
        (Script(BOOT), {"exit_code": 137}, "stopped", "serving"),
        (Script(BOOT), {"exit_code": 137, "oom_killed": True}, "died", "serving"),
        (Script(BOOT[:3]), {"exit_code": 137}, "stopped", "loading-weights"),
        (Script(BOOT[:3]), {"exit_code": 137, "oom_killed": True}, "failed", "loading-weights"),
        (FAILS, {"exit_code": 1}, "failed", None),
        (Script(BOOT[:3]), {"exit_code": 1}, "failed", "loading-weights"),
        (Script(BOOT[:3]), {"exit_code": 137, "name": "dsv41-vllm-failed-20261129T195003Z"}, "failed", None),
    ],
)
def test_how_a_lane_ended(script: Script, changes: dict[str, object], state: str, phase: str | None) -> None:
    found = status(script, changes=OVER | changes)
    assert found.state == state
    assert phase is None or found.phase == phase
    assert found.since == "2026-11-29T19:50:03Z"
    assert found.health["exit_code"] == changes["exit_code"]


def test_a_failed_lane_says_why() -> None:
    found = status(Script(((1.0, BOOT[0][1]), (378.0, KV_LINE))), changes=OVER | {"exit_code": 1})
    assert found.health == {"exit_code": 1, "reason": "kv-cache-too-small"}


def test_a_lane_that_never_started() -> None:
    found = status(SERVES, changes=NEVER)
    assert (found.state, found.phase, found.health) == ("stopped", None, {})
    found = status(SERVES, changes=NEVER | {"exit_code": 128, "error": "no such device"})
    assert (found.state, found.health) == ("failed", {"exit_code": 128, "error": "no such device"})


@pytest.mark.parametrize(("state", "expected"), [("paused", "degraded"), ("restarting", "died")])
def test_states_of_the_engine_of_containers(state: str, expected: str) -> None:
    found = status(SERVES, changes={"state": state, "restart_count": 2})
    assert (found.state, found.health["why"], found.health["restarts"]) == (expected, f"the container is {state}", 2)


def test_strangers_are_listed_when_they_matter() -> None:
    station = backend()
    by_hand = container(V14, id="id-hand", name="dsv41-by-hand", labels={})
    postgres = replace(STRANGER, id="id-pg", name="pg", image="postgres:17", gpus=None, command=())
    for each in (by_hand, STRANGER, postgres):
        station.add(each)
    found = lanes(Tools(station, BackendHttp(station), station.clock), (V14, launch("v13")))
    assert [(each.container, each.state, each.lane, each.release) for each in found] == [
        ("dsv41-by-hand", "foreign", "deepseek-v4.1-flash", "v14"),
        ("someone", "foreign", None, None),
    ]
    assert found[1].health == {"gpus": "all", "why": "gb300serve did not create it (image lmsysorg/sglang:dev)"}


class FakeGpu:
    def __init__(self, told: GpuHeld) -> None:
        self._told = told

    def held(self) -> GpuHeld:
        return self._told


def test_of_a_stranger_on_the_gpu_its_memory_is_told() -> None:
    """Also of one that was given no GPU by Docker, and computes on one."""
    station = backend()
    hidden = replace(STRANGER, id="id-hidden", name="hidden", gpus=None)
    for each in (STRANGER, hidden):
        station.add(each)
    gpu = FakeGpu(GpuHeld({"id-stranger": 200 * 1024**3, "id-hidden": 1024**3}, 201 * 1024**3))
    found = lanes(Tools(station, BackendHttp(station), station.clock, gpu=gpu))
    assert [(each.container, each.health["gpu_memory"], each.health["why"]) for each in found] == [
        (
            "hidden",
            1024**3,
            "gb300serve did not create it (image lmsysorg/sglang:dev); it holds 1.0 GiB of the GPU's memory",
        ),
        (
            "someone",
            200 * 1024**3,
            "gb300serve did not create it (image lmsysorg/sglang:dev); it holds 200.0 GiB of the GPU's memory",
        ),
    ]
    unknown = FakeGpu(GpuHeld(missing="nvidia-smi is not on PATH"))
    (only,) = lanes(Tools(station, BackendHttp(station), station.clock, gpu=unknown))
    assert only.health == {
        "gpus": "all",
        "why": "gb300serve did not create it (image lmsysorg/sglang:dev); how much of the GPU's memory it holds was "
        "not checked (nvidia-smi is not on PATH)",
    }


def test_live_lanes_come_first() -> None:
    station = backend()
    station.add(container(launch("v13"), **OVER, exit_code=0, name="a-kept"), Script(BOOT))
    station.add(container(V14), SERVES, plan())
    found = lanes(Tools(station, BackendHttp(station), station.clock), (V14,))
    assert [each.container for each in found] == ["dsv41-vllm", "a-kept"]


def test_a_changed_recipe_is_drift() -> None:
    changed = replace(V14, plan=replace(plan(), command=(*V14.plan.command, "--max-num-seqs", "16")))
    assert tuple(each.message for each in status(SERVES, known=(changed,)).drift) == (
        "command: the recipe has --max-num-seqs 16, the container has nothing",
        "the recipe or the site has changed since this container was created",
    )


def test_the_log_is_read_only_when_the_lane_does_not_answer() -> None:
    station, found = station_with(SERVES)

    def unread(container: str, tail: int | None = None) -> Iterator[LogLine]:
        raise AssertionError(container)

    station.log = unread  # type: ignore[method-assign]  # must not be called
    assert lane_status(found, Tools(station, BackendHttp(station), station.clock), (V14,)).state == "ready"


def test_a_lane_that_its_policy_starts_again_and_again_has_died() -> None:
    booting: dict[str, object] = {"started_at": START - 100.0, "restart_count": 5, "restart_policy": "always"}
    found = status(SERVES, changes=booting)
    why = "its restart policy has started it 5 times; stop the lane to end that"
    assert (found.state, found.health["reason"], found.health["why"]) == ("died", "crash-loop", why)
    assert status(SERVES, changes={"restart_count": 5}).state == "ready"


@pytest.mark.parametrize(
    ("exit_code", "asked", "state"), [(1, True, "stopped"), (1, False, "failed"), (0, True, "stopped")]
)
def test_what_was_asked_to_end_was_stopped_whatever_its_exit_code(exit_code: int, asked: bool, state: str) -> None:
    """vLLM ends with 0, 1, 130 or 137 when it is asked to while it boots."""
    station, found = station_with(Script(BOOT[:3]), **OVER, exit_code=exit_code)
    it = RunningLane("deepseek-v4.1-flash/v14", found.name, found.id, V14.digest)
    entries = (entry(after=(it,)), *((entry(verb="down", before=(it,), after=()),) if asked else ()))
    tools = Tools(station, BackendHttp(station), station.clock)
    seen = lane_status(found, tools, (V14,), RunHistory(entries))
    assert (seen.state, [each.against for each in seen.drift]) == (state, [] if asked else ["journal"])


@pytest.mark.parametrize(("asked", "state"), [(True, "stopped"), (False, "died")])
def test_a_lane_that_was_killed_by_nobody_of_ours_has_died(asked: bool, state: str) -> None:
    station, found = station_with(Script(BOOT), **OVER, exit_code=137)
    it = RunningLane("deepseek-v4.1-flash/v14", found.name, found.id, V14.digest)
    entries = (entry(after=(it,)), *((entry(verb="down", before=(it,), after=()),) if asked else ()))
    tools = Tools(station, BackendHttp(station), station.clock)
    assert lane_status(found, tools, (V14,), RunHistory(entries)).state == state


def test_a_kept_container_is_not_held_to_its_recipe() -> None:
    changed = replace(V14, plan=replace(plan(), command=(*V14.plan.command, "--max-num-seqs", "16")))
    kept = OVER | {"exit_code": 0, "name": "dsv41-vllm-kept-v14-20261129T195003Z"}
    assert status(Script(BOOT), known=(changed,), changes=kept).drift == ()


def test_a_lane_whose_last_launch_did_not_keep_its_receipts_is_degraded() -> None:
    station, found = station_with(SERVES)
    tools = Tools(station, BackendHttp(station), station.clock)
    receipts = ({"name": "a", "state": "kept"}, {"name": "engine argument b", "state": "different"}, {"name": "server"})
    wrong = record("v14", container={"name": found.name, "id": found.id}, exit={"tool": 9}, receipts=receipts)
    seen = lane_status(found, tools, (V14,), RunHistory(runs=(wrong,)))
    assert seen.state == "degraded"
    assert seen.health["why"] == "receipts missing from its boot: engine argument b"
    again = replace(wrong, exit={"tool": 130})
    assert lane_status(found, tools, (V14,), RunHistory(runs=(wrong, again))).state == "ready"


LANE = "deepseek-v4.1-flash"
V13, V14_CHOOSE = launch("v13"), launch("v14")
ENDED = {"state": "exited", "finished_at": START}
GLM = container(
    replace(V14_CHOOSE, plan=replace(plan(), lane="glm", recipe="glm/v1", release="v1")), name="glm", id="id-glm"
)


def test_without_a_ref_only_a_live_lane_is_meant() -> None:
    assert choose_container("down", (), None, None) is None
    assert choose_container("down", (STRANGER, container(V13, **ENDED)), None, None) is None
    assert choose_container(
        "down", (STRANGER, container(V13, **ENDED), container(V14_CHOOSE)), None, None
    ) == container(V14_CHOOSE)


def test_several_live_lanes_are_listed() -> None:
    with pytest.raises(SeveralLanesError) as caught:
        choose_container("down", (container(V14_CHOOSE), GLM), None, None)
    assert caught.value.exit_code == 2
    assert caught.value.message == (
        "several lanes are running: deepseek-v4.1-flash/v14 (container dsv41-vllm), glm/v1 (container glm)"
    )
    assert caught.value.suggest == (Action("down", ref="deepseek-v4.1-flash/v14"), Action("down", ref="glm/v1"))


def test_a_release_is_found_running_or_not() -> None:
    kept = container(V13, **ENDED)
    assert choose_container("logs", (container(V14_CHOOSE), GLM, kept), LANE, "v13") == kept
    assert choose_container("logs", (container(V14_CHOOSE), GLM, kept), LANE, None) == container(V14_CHOOSE)
    assert choose_container("logs", (container(V14_CHOOSE), GLM), LANE, "v12") is None


def test_a_changed_launch_answers_to_its_release() -> None:
    changed = replace(V14_CHOOSE, plan=replace(plan(), recipe=f"{LANE}/v14+set"))
    assert choose_container("down", (container(changed),), LANE, "v14") == container(changed)


def test_the_last_that_ran_is_meant_and_failed_ones_only_without_another() -> None:
    older = container(V14_CHOOSE, **ENDED | {"finished_at": START - 100.0}, id="older")
    failed = container(V14_CHOOSE, **ENDED, id="failed", name="dsv41-vllm-failed-20261129T195003Z")
    assert choose_container("logs", (failed, older), LANE, "v14") == older
    assert choose_container("logs", (failed,), LANE, "v14") == failed


class Unhealthy(BackendHttp):
    def get(self, url: str, timeout: float, headers: Mapping[str, str] | None = None) -> Response:
        return Response(503, "") if url.endswith("/health") else super().get(url, timeout, headers)


def serving(**changes: object) -> tuple[FakeBackend, Container]:
    station = backend(SERVES)
    return station, station.add(container(V14, **changes), plan=V14.plan)


def differs(tools: Tools, found: Container, history: RunHistory = RunHistory()) -> tuple[str, ...]:  # noqa: B008 - frozen
    with pytest.raises(ServesWronglyError) as caught:
        verify_serving(found, V14, tools, history)
    assert (caught.value.exit_code, caught.value.suggest) == (
        9,
        (Action("down", "remove it", ("--remove",)), Action("up", "then launch it")),
    )
    return caught.value.differs


def test_a_lane_that_serves_as_it_should() -> None:
    station, found = serving()
    assert verify_serving(found, V14, Tools(station, BackendHttp(station), station.clock), RunHistory()) == ()


def test_what_differs_is_named() -> None:
    station, found = serving(env={}, restart_policy="always")
    assert differs(Tools(station, BackendHttp(station), station.clock), found) == (
        "restart: the recipe has no, the container has always",
    )


def test_an_engine_that_is_dying() -> None:
    station, found = serving()
    assert differs(Tools(station, Unhealthy(station), station.clock), found) == (
        "degraded: /health does not return 200: the engine is dead or dying",
    )


def test_receipts_that_its_launch_did_not_keep() -> None:
    station, found = serving()
    unkept = {"name": "Loaded {value} configs", "state": "missing"}
    wrong = replace(record("v14"), container={"id": found.id}, exit={"tool": 9}, receipts=(unkept,))
    tools = Tools(station, BackendHttp(station), station.clock)
    assert differs(tools, found, RunHistory(runs=(wrong,))) == (
        "degraded: receipts missing from its boot: Loaded {value} configs",
    )


def test_a_lane_that_was_started_by_hand_serves_all_the_same() -> None:
    station, found = serving()
    down = entry(verb="down", result="stopped", after=())
    (told,) = verify_serving(found, V14, Tools(station, BackendHttp(station), station.clock), RunHistory((down,)))
    assert "it was not started by gb300serve" in told
