from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import pytest

from gb300serve.core.errors import Action, BackendError, Gb300Error, MachineError
from gb300serve.core.ports import Response
from gb300serve.lifecycle.backend import Container, Image, Listener
from gb300serve.lifecycle.down import down
from gb300serve.lifecycle.execute import LaunchResult, execute
from gb300serve.lifecycle.failures import LaunchInterruptedError
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.reconcile import (
    Observed,
    containers_on_gpu,
    containers_on_port,
    engine_port,
    plan_launch,
    reconcile,
)
from gb300serve.lifecycle.refusals import (
    ContainerUnusableError,
    GpuBusyError,
    ImageDiffersError,
    ImageMissingError,
    MountSourceMissingError,
    NameHeldByLaneError,
    NameHeldByStrangerError,
    NameHeldError,
    PortHeldError,
    PortListenedError,
    SecretsChangedError,
)
from gb300serve.lifecycle.steps import detached
from gb300serve.lifecycle.tools import Tools
from tests.support.fake_backend import FakeBackend
from tests.support.fake_clock import START
from tests.support.fake_http import BackendHttp
from tests.support.launches import FAILS, FOUND, SERVES, STRANGER, backend, contained, container, launch, plan

V13, V14 = launch("v13"), launch("v14")
KEPT_V13 = "dsv41-vllm-kept-v13-20261129T195003Z"
KEEPS_V13 = (
    f"rename dsv41-vllm to {KEPT_V13}; deepseek-v4.1-flash/v13, stopped 2026-11-29 19:49:03Z with exit code 0, "
    "is kept, and rollback returns to it"
)
ENDED = {"state": "exited", "finished_at": START - 60.0, "exit_code": 0}
NEW = [
    "create dsv41-vllm for deepseek-v4.1-flash/v14 from vllm/vllm-openai:deepseekv41-flash-0909@sha256:00d5",
    "start dsv41-vllm",
    "wait for READY (right model listed, our process answers, one completion succeeds)",
]
WATCH = ["check for READY (right model listed, our process answers, one completion succeeds)"]


def seen(*containers: Container) -> Observed:
    return Observed(containers=containers, image=FOUND)


def steps(observed: Observed, of: object = None, *, replace: bool = False) -> list[str]:
    wanted = V14 if of is None else of
    assert isinstance(wanted, type(V14))
    return [step.describe() for step in reconcile(wanted, observed, START, replace=replace)]


def refusal(observed: Observed, *, replace: bool = False) -> MachineError:
    with pytest.raises(MachineError) as caught:
        reconcile(V14, observed, START, replace=replace)
    assert caught.value.exit_code == 6
    return caught.value


def with_restart(policy: str) -> object:
    return replace(V14, plan=contained(V14.plan, restart=policy))


def test_a_bare_machine_gets_a_new_container() -> None:
    assert steps(seen()) == NEW


def test_the_restart_policy_comes_after_ready() -> None:
    found = steps(seen(), with_restart("unless-stopped"))
    assert found[-2:] == [NEW[-1], "set the restart policy of dsv41-vllm to unless-stopped"]


def test_the_same_plan_running_is_watched() -> None:
    assert steps(seen(container(V14))) == WATCH


def test_a_launch_cut_between_ready_and_policy_gets_its_policy() -> None:
    wanted = with_restart("always")
    assert isinstance(wanted, type(V14))
    running = container(wanted)
    assert steps(seen(running), wanted) == [*WATCH, "set the restart policy of dsv41-vllm to always"]
    assert steps(seen(replace(running, restart_policy="always")), wanted) == WATCH


@pytest.mark.parametrize("state", ["created", "exited"])
def test_the_same_plan_stopped_is_started_again(state: str) -> None:
    kept = container(V14, **ENDED | {"state": state})
    assert steps(seen(kept)) == ["start dsv41-vllm (the kept container)", NEW[-1]]


def test_a_kept_container_boots_without_its_policy() -> None:
    kept = container(V14, **ENDED, restart_policy="always")
    assert steps(seen(kept))[0] == "set the restart policy of dsv41-vllm to no"


def test_a_container_left_under_its_kept_name_comes_back() -> None:
    older = container(V14, **ENDED | {"finished_at": START - 900.0}, id="id-older", name="dsv41-vllm-kept-v14-older")
    kept = container(V14, **ENDED, name="dsv41-vllm-kept-v14-20261129T195003Z")
    assert steps(seen(older, kept)) == [
        "rename dsv41-vllm-kept-v14-20261129T195003Z to dsv41-vllm",
        "start dsv41-vllm (the kept container)",
        NEW[-1],
    ]


def test_a_failed_container_is_never_started_again() -> None:
    failed = container(V14, **ENDED, name="dsv41-vllm-failed-20261129T195003Z")
    assert steps(seen(failed)) == NEW


def test_a_crash_loop_of_the_same_plan_is_started_once_without_its_policy() -> None:
    looping = container(V14, state="restarting", restart_policy="always", restart_count=12)
    assert steps(seen(looping)) == [
        "set the restart policy of dsv41-vllm to no",
        "stop dsv41-vllm (SIGKILL after 30 s); the container is kept",
        "start dsv41-vllm (the kept container)",
        NEW[-1],
    ]


@pytest.mark.parametrize("state", ["paused", "removing", "dead"])
def test_states_that_cannot_start_are_named(state: str) -> None:
    error = refusal(seen(container(V14, state=state)))
    assert isinstance(error, ContainerUnusableError)
    assert error.message == f"deepseek-v4.1-flash/v14 (container dsv41-vllm) is {state}"


def test_a_stopped_release_makes_room_and_stays_the_way_back() -> None:
    assert steps(seen(container(V13, **ENDED))) == [KEEPS_V13, *NEW]
    other = replace(V13, plan=replace(plan("v13"), lane="glm-flash", recipe="glm-flash/v13"))
    error = refusal(seen(container(other, **ENDED)))
    assert isinstance(error, NameHeldError)
    assert error.suggest == (
        Action("up", "keep it under another name and launch", ("--replace",)),
        Action("up", "launch under another name", ("--set", "container.name=dsv41-vllm-v14")),
    )


def test_a_running_release_holds_its_name() -> None:
    error = refusal(seen(container(V13)))
    assert error.message == "the name dsv41-vllm is held by deepseek-v4.1-flash/v13, running since 2026-11-29 18:50:03Z"
    assert error.suggest == (
        Action("up", "stop it, keep it under another name and launch", ("--replace",)),
        Action("down", "only stop it", ref="deepseek-v4.1-flash/v13"),
    )


def test_replacing_keeps_the_old_one() -> None:
    old = container(V13, restart_policy="unless-stopped", stop_timeout=45)
    assert steps(seen(old), replace=True) == [
        "set the restart policy of dsv41-vllm to no",
        "stop dsv41-vllm (SIGKILL after 45 s); the container is kept",
        f"rename dsv41-vllm to {KEPT_V13}",
        *NEW,
    ]
    assert steps(seen(container(V13, **ENDED)), replace=True) == [KEEPS_V13, *NEW]


def test_replacing_goes_back_to_a_kept_release() -> None:
    kept = container(V14, **ENDED, name="dsv41-vllm-kept-v14-20261128T000000Z")
    assert steps(seen(container(V13), kept), replace=True) == [
        "stop dsv41-vllm (SIGKILL after 30 s); the container is kept",
        f"rename dsv41-vllm to {KEPT_V13}",
        "rename dsv41-vllm-kept-v14-20261128T000000Z to dsv41-vllm",
        "start dsv41-vllm (the kept container)",
        NEW[-1],
    ]


def test_replacing_stops_a_release_of_the_lane_under_another_name() -> None:
    other = container(V13, name="dsv41-v13")
    assert steps(seen(other), replace=True) == ["stop dsv41-v13 (SIGKILL after 30 s); the container is kept", *NEW]
    error = refusal(seen(other))
    assert isinstance(error, GpuBusyError)
    assert error.suggest == (Action("up", arguments=("--replace",)),)


@pytest.mark.parametrize("replacing", [False, True])
def test_strangers_are_never_replaced(replacing: bool) -> None:
    error = refusal(seen(replace(STRANGER, name="dsv41-vllm")), replace=replacing)
    assert isinstance(error, NameHeldByStrangerError)
    assert error.suggest[0] == "rename it: docker rename dsv41-vllm dsv41-vllm-aside"
    error = refusal(seen(STRANGER), replace=replacing)
    assert isinstance(error, GpuBusyError)
    assert error.message == (
        "a container that gb300serve did not create uses the GPU: someone (image lmsysorg/sglang:dev), "
        "running since 2026-11-29 17:50:03Z; it is never stopped for you"
    )
    assert error.suggest == ("docker stop someone",)


@pytest.mark.parametrize("replacing", [False, True])
def test_another_lane_is_never_replaced(replacing: bool) -> None:
    glm = replace(V13, plan=replace(plan("v13"), lane="glm-flash", recipe="glm-flash/v13"))
    error = refusal(seen(container(glm, name="glm")), replace=replacing)
    assert isinstance(error, GpuBusyError)
    assert error.message == (
        "another lane uses the GPU: glm-flash/v13 (container glm), running since 2026-11-29 18:50:03Z"
    )
    assert error.suggest == (Action("down", ref="glm-flash/v13"),)
    error = refusal(seen(container(glm)), replace=replacing)
    assert isinstance(error, NameHeldByLaneError)


def test_ports_are_refused_before_anything_exists() -> None:
    cpu = replace(STRANGER, gpus=None, command=("--port=30006",))
    error = refusal(seen(cpu))
    assert isinstance(error, PortHeldError)
    assert error.message == (
        "port 30006 is taken by container someone (image lmsysorg/sglang:dev), on the host's network, "
        "running since 2026-11-29 17:50:03Z"
    )
    assert isinstance(refusal(replace(seen(), neighbours=(cpu,))), PortHeldError)
    listener = Listener(30006, "127.0.0.1", "python3, process 4711")
    error = refusal(replace(seen(), listeners=(listener,)))
    assert isinstance(error, PortListenedError)
    assert error.message == "port 30006 is taken: python3, process 4711 listens on 127.0.0.1"


def test_the_listener_may_be_what_is_replaced() -> None:
    observed = replace(seen(container(V13)), listeners=(Listener(30006, "0.0.0.0"),))
    assert steps(observed, replace=True)[-3:] == NEW


def test_images_are_never_pulled() -> None:
    error = refusal(Observed())
    assert isinstance(error, ImageMissingError)
    assert error.hint == "docker pull vllm/vllm-openai:deepseekv41-flash-0909@sha256:00d5"
    error = refusal(Observed(tagged=replace(FOUND, digests=("vllm/vllm-openai@sha256:77",))))
    assert isinstance(error, ImageDiffersError)
    assert error.message == (
        "vllm/vllm-openai:deepseekv41-flash-0909 on this machine is another image: the recipe pins sha256:00d5, "
        "the image has sha256:77"
    )


def test_a_local_image_is_known_by_its_id() -> None:
    local = replace(V14, plan=replace(plan(), image="glmf-sglang:0922", image_id="sha256:c3d0"))
    with pytest.raises(ImageDiffersError) as caught:
        reconcile(local, Observed(image=Image("sha256:ffff", (), "arm64")), START)
    assert caught.value.hint == "build or load the image with the id sha256:c3d0"
    with pytest.raises(ImageMissingError) as missing:
        reconcile(local, Observed(), START)
    assert missing.value.hint == "build it or load it (docker load): it has no registry digest"


def test_missing_mount_sources_are_refused_for_kept_containers_too() -> None:
    observed = replace(seen(container(V14, **ENDED)), missing_sources=("/models/DeepSeek", "/cache"))
    error = refusal(observed)
    assert isinstance(error, MountSourceMissingError)
    assert error.message.startswith("/models/DeepSeek, /cache do not exist on the machine that runs the containers")


ROTATED = replace(V14, secrets={"VLLM_API_KEY": "new-value"})
OLD_KEY = {"env": {"VLLM_API_KEY": "old-value"}}


def test_a_kept_container_with_the_secrets_of_now_is_started() -> None:
    kept = container(V14, **ENDED, env={"VLLM_API_KEY": "new-value"})
    assert steps(seen(kept), ROTATED) == ["start dsv41-vllm (the kept container)", NEW[-1]]


def test_another_value_of_a_secret_is_refused_by_name() -> None:
    with pytest.raises(SecretsChangedError) as caught:
        reconcile(ROTATED, seen(container(V14, **OLD_KEY)), START)
    assert "was created with another value of VLLM_API_KEY" in caught.value.message
    assert [(action.verb, action.arguments) for action in caught.value.suggest if isinstance(action, Action)] == [
        ("up", ("--replace",)),
        ("down", ("--remove",)),
    ]
    assert "old-value" not in f"{caught.value.message}{caught.value.suggest}"


def test_another_value_of_a_secret_is_replaced_by_a_fresh_container() -> None:
    away = "rename dsv41-vllm to dsv41-vllm-kept-v14-20261129T195003Z"
    ended = "deepseek-v4.1-flash/v14, stopped 2026-11-29 19:49:03Z with exit code 0,"
    stopped = steps(seen(container(V14, **ENDED, **OLD_KEY)), ROTATED, replace=True)
    running = steps(seen(container(V14, **OLD_KEY)), ROTATED, replace=True)
    assert stopped[0] == f"{away}; {ended} is kept, and rollback returns to it"
    assert stopped == steps(seen(container(V14, **ENDED, **OLD_KEY)), ROTATED)
    assert stopped[1].startswith("create dsv41-vllm ")
    assert running[0].startswith("stop dsv41-vllm")
    assert running[1:] == [away, *stopped[1:]]


def test_an_old_value_under_a_kept_name_stands_in_nobodys_way() -> None:
    kept = container(V14, **ENDED, **OLD_KEY, name="dsv41-vllm-kept-v14-20261129T195003Z")
    assert steps(seen(kept), ROTATED)[0].startswith("create dsv41-vllm ")


@pytest.mark.parametrize(
    ("wanted", "held", "clash"),
    [
        ("all", "all", True),
        ("all", None, False),
        (None, "all", False),
        ("1", "device=GPU-a", True),
        ("device=GPU-a", "device=GPU-b", False),
        ("device=GPU-a,GPU-b", "device=GPU-b", True),
    ],
)
def test_only_lists_of_devices_can_be_told_apart(wanted: str | None, held: str | None, clash: bool) -> None:
    assert any(containers_on_gpu(wanted, (replace(STRANGER, gpus=held),))) is clash


def test_a_label_can_say_that_a_container_holds_the_gpu() -> None:
    assert any(containers_on_gpu("all", (replace(STRANGER, gpus=None, labels={"gpu-lane": "1"}),)))
    assert not any(containers_on_gpu("all", (replace(STRANGER, gpus=None, labels={"gpu-lane": "0"}),)))


@pytest.mark.parametrize(
    ("image", "command", "port"),
    [
        ("x", ("--port", "30006"), 30006),
        ("x", ("--port=30006",), 30006),
        ("x", ("--port",), None),
        ("x", ("--port", "abc"), None),
        ("postgres", (), None),
        ("vllm/vllm-openai:x", ("--model", "/model"), 8000),
        ("local", ("python3", "-m", "sglang.launch_server"), 30000),
    ],
)
def test_the_port_of_an_engine(image: str, command: tuple[str, ...], port: int | None) -> None:
    assert engine_port(replace(STRANGER, image=image, command=command)) == port


def test_published_ports_and_the_hosts_network_take_ports_of_the_host() -> None:
    published = replace(STRANGER, host_network=False, published=(8021,))
    assert list(containers_on_port(8021, (published,))) == [published]
    assert list(containers_on_port(30100, (published,))) == []
    assert list(containers_on_port(30100, (STRANGER,))) == [STRANGER]


V14_UP = replace(launch("v14"), plan=contained(launch("v14").plan, restart="unless-stopped"))
V13_UP = replace(launch("v13"), plan=contained(launch("v13").plan, restart="unless-stopped"))
# More changing calls than any launch below makes.
MOST_CALLS = 12


class Killed(BaseException):
    """kill -9: nothing may catch it, nothing is cleaned up."""


def tools_of(station: FakeBackend) -> Tools:
    return Tools(station, BackendHttp(station), station.clock)


def up(of: Launch, station: FakeBackend, *, replacing: bool = False) -> LaunchResult:
    tools = tools_of(station)
    return execute(plan_launch(of, tools, replace=replacing), of, tools)


def states(station: FakeBackend) -> dict[str, str]:
    return {each.name: f"{each.state} {each.restart_policy}" for each in station.containers()}


def cut(station: FakeBackend, call: int, error: type[BaseException], *, before: bool) -> None:
    """Raise at the n-th changing call from now on, before or after its effect."""
    left = [call]

    def count(_: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise error

    station.before_call, station.after_call = (count, lambda _: None) if before else (lambda _: None, count)


def heal(station: FakeBackend) -> None:
    station.before_call = station.after_call = lambda _: None


def test_a_bare_machine_serves() -> None:
    station = backend()
    launched = up(V14_UP, station)
    assert station.calls == ["create dsv41-vllm", "start dsv41-vllm", "restart dsv41-vllm unless-stopped"]
    assert states(station) == {"dsv41-vllm": "running unless-stopped"}
    assert launched.served is not None
    assert not launched.served.already


def test_a_second_up_already_serves() -> None:
    station = backend()
    up(V14_UP, station)
    again = up(V14_UP, station)
    assert again.served is not None
    assert again.served.already
    assert len(station.calls) == 3


def test_showing_the_steps_changes_nothing() -> None:
    station = backend()
    assert len(plan_launch(V14_UP, tools_of(station))) == 4
    assert station.calls == []


def test_detached_starts_and_leaves_the_rest_to_the_next_up() -> None:
    station = backend()
    tools = tools_of(station)
    launched = execute(detached(plan_launch(V14_UP, tools)), V14_UP, tools)
    assert (launched.container.name, launched.container.state, launched.served) == ("dsv41-vllm", "running", None)
    assert states(station) == {"dsv41-vllm": "running no"}
    up(V14_UP, station)
    assert states(station) == {"dsv41-vllm": "running unless-stopped"}


def test_down_and_up_again_uses_the_kept_container() -> None:
    station = backend()
    first = up(V14_UP, station).container
    ended = down(first, tools_of(station))
    assert (ended.was_running, ended.killed, ended.removed, ended.container.exit_code) == (True, False, False, 0)
    assert states(station) == {"dsv41-vllm": "exited no"}
    assert up(V14_UP, station).container.id == first.id
    assert states(station) == {"dsv41-vllm": "running unless-stopped"}


def test_replacing_keeps_the_old_one_stopped() -> None:
    station = backend()
    up(V13_UP, station)
    up(V14_UP, station, replacing=True)
    kept, serving = station.containers()
    assert kept.name.startswith("dsv41-vllm-kept-v13-2026")
    assert (kept.state, kept.restart_policy) == ("exited", "no")
    assert (serving.name, serving.state, serving.restart_policy) == ("dsv41-vllm", "running", "unless-stopped")
    assert serving.labels == V14_UP.labels


def test_a_failed_boot_is_set_aside() -> None:
    station = backend(FAILS)
    with pytest.raises(Gb300Error) as caught:
        up(V14_UP, station)
    assert caught.value.exit_code == 8
    (failed,) = station.containers()
    assert failed.name.startswith("dsv41-vllm-failed-2026")
    assert (failed.state, failed.restart_policy, failed.restart_count) == ("exited", "no", 0)


def test_a_failed_replacement_puts_the_old_one_back() -> None:
    station = backend(SERVES, v14=FAILS)
    old = up(V13_UP, station).container
    with pytest.raises(Gb300Error) as caught:
        up(V14_UP, station, replacing=True)
    assert caught.value.exit_code == 8
    assert "dsv41-vllm was put back and boots again" in caught.value.suggest
    back = station.find("dsv41-vllm")
    assert back is not None
    assert (back.id, back.state, back.restart_policy) == (old.id, "running", "unless-stopped")
    assert len(station.containers()) == 2
    assert up(V13_UP, station).container.id == old.id


def test_a_kept_container_that_fails_is_set_aside_and_the_other_comes_back() -> None:
    station = backend()
    up(V13_UP, station)
    up(V14_UP, station, replacing=True)
    (kept,) = (each for each in station.containers() if each.labels == V13_UP.labels)
    station.add(kept, FAILS, V13_UP.plan)
    with pytest.raises(Gb300Error):
        up(V13_UP, station, replacing=True)
    names = {each.labels["gb300serve.release"]: each.name for each in station.containers()}
    assert names["v14"] == "dsv41-vllm"
    assert names["v13"].startswith("dsv41-vllm-failed-")


def test_a_container_that_cannot_start_is_removed_again() -> None:
    station = backend(replace(SERVES, start_error='could not select device driver "" with capabilities: [[gpu]]'))
    with pytest.raises(BackendError, match="could not select device driver"):
        up(V14_UP, station)
    assert states(station) == {}


def test_a_replacement_that_cannot_start_puts_the_old_one_back() -> None:
    station = backend(SERVES, v14=replace(SERVES, start_error="no such device"))
    up(V13_UP, station)
    with pytest.raises(BackendError, match="no such device"):
        up(V14_UP, station, replacing=True)
    assert states(station) == {"dsv41-vllm": "running unless-stopped"}


def test_a_container_that_another_launch_created_is_left_alone() -> None:
    station = backend()
    tools = tools_of(station)
    steps = plan_launch(V14_UP, tools)
    station.create(V14_UP.plan, V14_UP.labels, {})
    with pytest.raises(BackendError, match="in use"):
        execute(steps, V14_UP, tools)
    assert states(station) == {"dsv41-vllm": "created no"}


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("call", range(1, 4))
def test_killed_at_any_call_of_a_first_launch(call: int, before: bool) -> None:
    station = backend()
    cut(station, call, Killed, before=before)
    with pytest.raises(Killed):
        up(V14_UP, station)
    heal(station)
    up(V14_UP, station)
    assert states(station) == {"dsv41-vllm": "running unless-stopped"}
    for left in station.containers():
        down(left, tools_of(station), remove=True)
    assert states(station) == {}


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("call", range(1, MOST_CALLS))
def test_killed_at_any_call_of_a_replacement(call: int, before: bool) -> None:
    """Forward to the new release, or back to the old one: both ways stay open, and neither container is lost."""
    for wanted in (V14_UP, V13_UP):
        station = backend()
        old = up(V13_UP, station).container
        cut(station, call, Killed, before=before)
        with suppress(Killed):
            up(V14_UP, station, replacing=True)
        heal(station)
        up(wanted, station, replacing=True)
        serving = [each for each in station.containers() if each.state == "running"]
        assert [(each.name, each.labels, each.restart_policy) for each in serving] == [
            ("dsv41-vllm", wanted.labels, "unless-stopped")
        ]
        assert old.id in [each.id for each in station.containers()]
        assert len(station.containers()) <= 2
        for left in station.containers():
            down(left, tools_of(station))
        assert {each.state for each in station.containers()} <= {"exited", "created"}


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("call", range(1, MOST_CALLS))
def test_killed_at_any_call_of_putting_back(call: int, before: bool) -> None:
    station = backend(SERVES, v14=FAILS)
    old = up(V13_UP, station).container
    cut(station, call, Killed, before=before)
    with pytest.raises((Killed, Gb300Error)):
        up(V14_UP, station, replacing=True)
    heal(station)
    launched = up(V13_UP, station, replacing=True)
    assert launched.container.id == old.id
    assert [each.name for each in station.containers() if each.state == "running"] == ["dsv41-vllm"]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("call", range(1, 4))
def test_interrupted_at_any_call_of_a_first_launch(call: int, before: bool) -> None:
    station = backend()
    cut(station, call, KeyboardInterrupt, before=before)
    with pytest.raises(LaunchInterruptedError) as caught:
        up(V14_UP, station)
    assert caught.value.exit_code == 130
    running = [each.name for each in station.containers() if each.state == "running"]
    assert running == (["dsv41-vllm"] if caught.value.running else [])
    assert caught.value.running or states(station) == {}
    heal(station)
    up(V14_UP, station)
    assert states(station) == {"dsv41-vllm": "running unless-stopped"}


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("call", range(1, 7))
def test_interrupted_at_any_call_of_a_replacement(call: int, before: bool) -> None:
    """Before the new one runs the old one comes back; from then on the new one goes on. Never neither, never both."""
    station = backend()
    up(V13_UP, station)
    cut(station, call, KeyboardInterrupt, before=before)
    with pytest.raises(LaunchInterruptedError) as caught:
        up(V14_UP, station, replacing=True)
    serving = [each for each in station.containers() if each.state == "running"]
    expected = V14_UP.labels if caught.value.running else V13_UP.labels
    assert [(each.name, each.labels) for each in serving] == [("dsv41-vllm", expected)]


def test_interrupted_while_booting_keeps_booting() -> None:
    station = backend()

    class Impatient(BackendHttp):
        def get(self, url: str, timeout: float, headers: Mapping[str, str] | None = None) -> Response:
            raise KeyboardInterrupt

    tools = Tools(station, Impatient(station), station.clock)
    with pytest.raises(LaunchInterruptedError) as caught:
        execute(plan_launch(V14_UP, tools), V14_UP, tools)
    assert (caught.value.message, caught.value.suggest) == (
        "interrupted; dsv41-vllm keeps running",
        (Action("up", "watch it again"), Action("down", "stop it")),
    )
    assert states(station) == {"dsv41-vllm": "running no"}
    up(V14_UP, station)
    assert station.calls.count("create dsv41-vllm") == 1


def test_a_refusal_changes_nothing() -> None:
    station = backend()
    up(V13_UP, station)
    calls = list(station.calls)
    with pytest.raises(MachineError):
        up(V14_UP, station)
    assert station.calls == calls


def test_sources_of_mounts_are_looked_for_where_nothing_else_refuses() -> None:
    """On Docker that look makes a container for a moment."""
    station = backend()
    station.missing = ("/models/x",)
    with pytest.raises(MountSourceMissingError):
        plan_launch(V14_UP, tools_of(station))
    station.add(STRANGER)
    with pytest.raises(GpuBusyError):
        plan_launch(V14_UP, tools_of(station))


def test_of_a_lane_that_runs_no_source_is_looked_for() -> None:
    station = backend()
    up(V14_UP, station)
    station.missing = ("/models/x",)
    assert up(V14_UP, station).served is not None
