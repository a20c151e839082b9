"""`up` as a whole against a backend in memory: every moment at which it can be cut short, and every way it can fail."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import pytest

from gb300serve.core.errors import BackendError, Gb300Error, MachineError
from gb300serve.core.ports import Response
from gb300serve.lifecycle.down import down
from gb300serve.lifecycle.execute import Launched, execute
from gb300serve.lifecycle.failures import LaunchInterruptedError
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.reconcile import prepare
from gb300serve.lifecycle.refusals import GpuBusyError, MountSourceMissingError
from gb300serve.lifecycle.steps import detached
from gb300serve.lifecycle.tools import Tools
from tests.support.fake_backend import FakeBackend
from tests.support.fake_http import BackendHttp
from tests.support.launches import FAILS, SERVES, STRANGER, backend, contained, launch

V14 = replace(launch("v14"), plan=contained(launch("v14").plan, restart="unless-stopped"))
V13 = replace(launch("v13"), plan=contained(launch("v13").plan, restart="unless-stopped"))
# More changing calls than any launch below makes.
MOST_CALLS = 12


class Killed(BaseException):
    """kill -9: nothing may catch it, nothing is cleaned up."""


def tools_of(station: FakeBackend) -> Tools:
    return Tools(station, BackendHttp(station), station.clock)


def up(of: Launch, station: FakeBackend, *, replacing: bool = False) -> Launched:
    tools = tools_of(station)
    return execute(prepare(of, tools, replace=replacing), of, tools)


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
    launched = up(V14, station)
    assert station.calls == ["create dsv41-vllm", "start dsv41-vllm", "restart dsv41-vllm unless-stopped"]
    assert states(station) == {"dsv41-vllm": "running unless-stopped"}
    assert launched.served is not None
    assert not launched.served.already


def test_a_second_up_already_serves() -> None:
    station = backend()
    up(V14, station)
    again = up(V14, station)
    assert again.served is not None
    assert again.served.already
    assert len(station.calls) == 3


def test_showing_the_steps_changes_nothing() -> None:
    station = backend()
    assert len(prepare(V14, tools_of(station))) == 4
    assert station.calls == []


def test_detached_starts_and_leaves_the_rest_to_the_next_up() -> None:
    station = backend()
    tools = tools_of(station)
    launched = execute(detached(prepare(V14, tools)), V14, tools)
    assert (launched.container.name, launched.container.state, launched.served) == ("dsv41-vllm", "running", None)
    assert states(station) == {"dsv41-vllm": "running no"}
    up(V14, station)
    assert states(station) == {"dsv41-vllm": "running unless-stopped"}


def test_down_and_up_again_uses_the_kept_container() -> None:
    station = backend()
    first = up(V14, station).container
    ended = down(first, tools_of(station))
    assert (ended.was_running, ended.killed, ended.removed, ended.container.exit_code) == (True, False, False, 0)
    assert states(station) == {"dsv41-vllm": "exited no"}
    assert up(V14, station).container.id == first.id
    assert states(station) == {"dsv41-vllm": "running unless-stopped"}


def test_replacing_keeps_the_old_one_stopped() -> None:
    station = backend()
    up(V13, station)
    up(V14, station, replacing=True)
    kept, serving = station.containers()
    assert kept.name.startswith("dsv41-vllm-kept-v13-2026")
    assert (kept.state, kept.restart_policy) == ("exited", "no")
    assert (serving.name, serving.state, serving.restart_policy) == ("dsv41-vllm", "running", "unless-stopped")
    assert serving.labels == V14.labels


def test_a_failed_boot_is_set_aside() -> None:
    station = backend(FAILS)
    with pytest.raises(Gb300Error) as caught:
        up(V14, station)
    assert caught.value.exit_code == 8
    (failed,) = station.containers()
    assert failed.name.startswith("dsv41-vllm-failed-2026")
    assert (failed.state, failed.restart_policy, failed.restart_count) == ("exited", "no", 0)


def test_a_failed_replacement_puts_the_old_one_back() -> None:
    station = backend(SERVES, v14=FAILS)
    old = up(V13, station).container
    with pytest.raises(Gb300Error) as caught:
        up(V14, station, replacing=True)
    assert caught.value.exit_code == 8
    assert "dsv41-vllm was put back and boots again" in str(caught.value.hint)
    back = station.find("dsv41-vllm")
    assert back is not None
    assert (back.id, back.state, back.restart_policy) == (old.id, "running", "unless-stopped")
    assert len(station.containers()) == 2
    assert up(V13, station).container.id == old.id


def test_a_kept_container_that_fails_is_set_aside_and_the_other_comes_back() -> None:
    station = backend()
    up(V13, station)
    up(V14, station, replacing=True)
    (kept,) = (each for each in station.containers() if each.labels == V13.labels)
    station.add(kept, FAILS, V13.plan)
    with pytest.raises(Gb300Error):
        up(V13, station, replacing=True)
    names = {each.labels["gb300serve.release"]: each.name for each in station.containers()}
    assert names["v14"] == "dsv41-vllm"
    assert names["v13"].startswith("dsv41-vllm-failed-")


def test_a_container_that_cannot_start_is_removed_again() -> None:
    station = backend(replace(SERVES, start_error='could not select device driver "" with capabilities: [[gpu]]'))
    with pytest.raises(BackendError, match="could not select device driver"):
        up(V14, station)
    assert states(station) == {}


def test_a_replacement_that_cannot_start_puts_the_old_one_back() -> None:
    station = backend(SERVES, v14=replace(SERVES, start_error="no such device"))
    up(V13, station)
    with pytest.raises(BackendError, match="no such device"):
        up(V14, station, replacing=True)
    assert states(station) == {"dsv41-vllm": "running unless-stopped"}


def test_a_container_that_another_launch_created_is_left_alone() -> None:
    station = backend()
    tools = tools_of(station)
    steps = prepare(V14, tools)
    station.create(V14.plan, V14.labels, {})
    with pytest.raises(BackendError, match="in use"):
        execute(steps, V14, tools)
    assert states(station) == {"dsv41-vllm": "created no"}


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("call", range(1, 4))
def test_killed_at_any_call_of_a_first_launch(call: int, before: bool) -> None:
    station = backend()
    cut(station, call, Killed, before=before)
    with pytest.raises(Killed):
        up(V14, station)
    heal(station)
    up(V14, station)
    assert states(station) == {"dsv41-vllm": "running unless-stopped"}
    for container in station.containers():
        down(container, tools_of(station), remove=True)
    assert states(station) == {}


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("call", range(1, MOST_CALLS))
def test_killed_at_any_call_of_a_replacement(call: int, before: bool) -> None:
    """Forward to the new release, or back to the old one: both ways stay open, and neither container is lost."""
    for wanted in (V14, V13):
        station = backend()
        old = up(V13, station).container
        cut(station, call, Killed, before=before)
        with suppress(Killed):
            up(V14, station, replacing=True)
        heal(station)
        up(wanted, station, replacing=True)
        serving = [each for each in station.containers() if each.state == "running"]
        assert [(each.name, each.labels, each.restart_policy) for each in serving] == [
            ("dsv41-vllm", wanted.labels, "unless-stopped")
        ]
        assert old.id in [each.id for each in station.containers()]
        assert len(station.containers()) <= 2
        for container in station.containers():
            down(container, tools_of(station))
        assert {each.state for each in station.containers()} <= {"exited", "created"}


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("call", range(1, MOST_CALLS))
def test_killed_at_any_call_of_putting_back(call: int, before: bool) -> None:
    station = backend(SERVES, v14=FAILS)
    old = up(V13, station).container
    cut(station, call, Killed, before=before)
    with pytest.raises((Killed, Gb300Error)):
        up(V14, station, replacing=True)
    heal(station)
    launched = up(V13, station, replacing=True)
    assert launched.container.id == old.id
    assert [each.name for each in station.containers() if each.state == "running"] == ["dsv41-vllm"]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("call", range(1, 4))
def test_interrupted_at_any_call_of_a_first_launch(call: int, before: bool) -> None:
    station = backend()
    cut(station, call, KeyboardInterrupt, before=before)
    with pytest.raises(LaunchInterruptedError) as caught:
        up(V14, station)
    assert caught.value.exit_code == 130
    running = [each.name for each in station.containers() if each.state == "running"]
    assert running == (["dsv41-vllm"] if caught.value.running else [])
    assert caught.value.running or states(station) == {}
    heal(station)
    up(V14, station)
    assert states(station) == {"dsv41-vllm": "running unless-stopped"}


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("call", range(1, 7))
def test_interrupted_at_any_call_of_a_replacement(call: int, before: bool) -> None:
    """Before the new one runs the old one comes back; from then on the new one goes on. Never neither, never both."""
    station = backend()
    up(V13, station)
    cut(station, call, KeyboardInterrupt, before=before)
    with pytest.raises(LaunchInterruptedError) as caught:
        up(V14, station, replacing=True)
    serving = [each for each in station.containers() if each.state == "running"]
    expected = V14.labels if caught.value.running else V13.labels
    assert [(each.name, each.labels) for each in serving] == [("dsv41-vllm", expected)]


def test_interrupted_while_booting_keeps_booting() -> None:
    station = backend()

    class Impatient(BackendHttp):
        def get(self, url: str, timeout: float, headers: Mapping[str, str] | None = None) -> Response:
            raise KeyboardInterrupt

    tools = Tools(station, Impatient(station), station.clock)
    with pytest.raises(LaunchInterruptedError) as caught:
        execute(prepare(V14, tools), V14, tools)
    assert (caught.value.message, caught.value.hint) == (
        "interrupted; dsv41-vllm keeps running; "
        "watch it again: gb300serve up deepseek-v4.1-flash/v14; stop it: gb300serve down deepseek-v4.1-flash/v14",
        None,
    )
    assert states(station) == {"dsv41-vllm": "running no"}
    up(V14, station)
    assert station.calls.count("create dsv41-vllm") == 1


def test_a_refusal_changes_nothing() -> None:
    station = backend()
    up(V13, station)
    calls = list(station.calls)
    with pytest.raises(MachineError):
        up(V14, station)
    assert station.calls == calls


def test_sources_of_mounts_are_looked_for_where_nothing_else_refuses() -> None:
    """On Docker that look makes a container for a moment."""
    station = backend()
    station.missing = ("/models/x",)
    with pytest.raises(MountSourceMissingError):
        prepare(V14, tools_of(station))
    station.add(STRANGER)
    with pytest.raises(GpuBusyError):
        prepare(V14, tools_of(station))


def test_of_a_lane_that_runs_no_source_is_looked_for() -> None:
    station = backend()
    up(V14, station)
    station.missing = ("/models/x",)
    assert up(V14, station).served is not None
