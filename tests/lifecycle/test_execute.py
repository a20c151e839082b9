"""The lock around the steps, and what becomes of a launch that another command overtakes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from gb300serve.core.errors import MachineError
from gb300serve.core.ports import Response
from gb300serve.lifecycle.events import Announcement, StepBegan, UndoFailed
from gb300serve.lifecycle.execute import LaunchResult, execute
from gb300serve.lifecycle.failures import BootFailedError, LaunchInterruptedError, LaunchOvertakenError
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.reconcile import plan_launch
from gb300serve.lifecycle.steps import AwaitReady, StopContainer, detached
from gb300serve.lifecycle.tools import Tools
from tests.support.fake_backend import FakeBackend
from tests.support.fake_http import BackendHttp
from tests.support.launches import FAILS, SERVES, backend, contained, launch

V13 = replace(launch("v13"), plan=contained(launch("v13").plan, restart="unless-stopped"))
V14 = replace(launch("v14"), plan=contained(launch("v14").plan, restart="unless-stopped"))


class KeptError(MachineError):
    def __init__(self) -> None:
        super().__init__("gb300serve down is changing what serves; nothing was done")


@dataclass
class FakeLock:
    """`busy`: another command has it. `log` tells what was done with it."""

    busy: bool = False
    by: str | None = None
    held: bool = False
    log: list[str] = field(default_factory=list)

    def acquire(self, patience: float) -> None:
        if self.busy:
            raise KeptError
        if not self.held:
            self.log.append("acquired")
        self.held = True

    def release(self) -> None:
        if self.held:
            self.log.append("released")
        self.held = False

    def stopping(self, container: str) -> None:
        self.log.append(f"stopping {container}")

    def stopped_by(self, container: str) -> str | None:
        return self.by


def up(of: Launch, station: FakeBackend, lock: FakeLock, told: list[Announcement] | None = None) -> LaunchResult:
    heard = (lambda _: None) if told is None else told.append
    tools = Tools(station, BackendHttp(station), station.clock, heard, lock=lock)
    return execute(plan_launch(of, tools, replace=True), of, tools)


def test_the_lock_is_free_while_a_boot_is_watched() -> None:
    station, lock = backend(), FakeLock()
    held: dict[str, bool] = {}

    def note(call: str) -> None:
        held[call] = lock.held

    station.before_call = note

    class Watched(BackendHttp):
        def get(self, url: str, timeout: float, headers: Mapping[str, str] | None = None) -> Response:
            held["watch"] = lock.held
            return super().get(url, timeout, headers)

    tools = Tools(station, Watched(station), station.clock, lock=lock)
    execute(plan_launch(V14, tools), V14, tools)
    assert held == {
        "create dsv41-vllm": True, "start dsv41-vllm": True, "watch": False, "restart dsv41-vllm unless-stopped": True,
    }  # fmt: skip
    assert lock.log == ["acquired", "released", "acquired"]


def test_what_is_stopped_is_told_to_others() -> None:
    station = backend()
    old = up(V13, station, FakeLock()).container
    lock = FakeLock()
    up(V14, station, lock)
    assert lock.log == ["acquired", f"stopping {old.id}", "released", "acquired"]


def test_a_boot_that_another_command_ended_is_left_as_it_left_it() -> None:
    station = backend(SERVES, v14=FAILS)
    up(V13, station, FakeLock())
    with pytest.raises(LaunchOvertakenError) as caught:
        up(V14, station, FakeLock(by="gb300serve down v14 (bob@station, process 12)"))
    assert caught.value.exit_code == 8
    assert caught.value.message == (
        "dsv41-vllm was stopped during its boot by gb300serve down v14 (bob@station, process 12); "
        "nothing else was changed"
    )
    assert {each.state for each in station.containers()} == {"exited"}


def test_nothing_is_put_back_while_another_command_is_at_it() -> None:
    station, lock, told = backend(SERVES, v14=FAILS), FakeLock(), list[Announcement]()
    up(V13, station, FakeLock())

    def busy_from_the_watch_on(announcement: Announcement) -> None:
        told.append(announcement)
        lock.busy = (isinstance(announcement, StepBegan) and isinstance(announcement.step, AwaitReady)) or lock.busy

    tools = Tools(station, BackendHttp(station), station.clock, busy_from_the_watch_on, lock=lock)
    with pytest.raises(BootFailedError):
        execute(plan_launch(V14, tools, replace=True), V14, tools)
    assert [each.reason for each in told if isinstance(each, UndoFailed)] == [
        "gb300serve down is changing what serves; nothing was done"
    ]
    assert {each.state for each in station.containers()} == {"exited"}


def test_ctrl_c_between_two_steps_takes_back_what_was_done() -> None:
    """It came while a step was told, before the step began: a lane that serves is not stopped and started for that."""
    station = backend()
    up(V13, station, FakeLock())
    calls = list(station.calls)

    def interrupt(announcement: Announcement) -> None:
        if isinstance(announcement, StepBegan) and isinstance(announcement.step, StopContainer):
            raise KeyboardInterrupt

    tools = Tools(station, BackendHttp(station), station.clock, interrupt)
    with pytest.raises(LaunchInterruptedError) as caught:
        execute(plan_launch(V14, tools, replace=True), V14, tools)
    assert not caught.value.running
    assert station.calls[len(calls) :] == ["restart dsv41-vllm no", "restart dsv41-vllm unless-stopped"]
    assert [(each.state, each.restart_policy) for each in station.containers()] == [("running", "unless-stopped")]


@pytest.mark.parametrize("ending", [KeyboardInterrupt, None])
def test_putting_back_is_not_interrupted(ending: type[BaseException] | None) -> None:
    """Every call that puts something back happens where Ctrl-C is not heard."""
    station = backend(SERVES, v14=FAILS)
    up(V13, station, FakeLock())
    deaf, heard = [False], list[tuple[str, bool]]()

    @contextmanager
    def uninterrupted() -> Iterator[None]:
        deaf[0] = True
        yield
        deaf[0] = False

    def note(call: str) -> None:
        heard.append((call, deaf[0]))
        if ending and call.startswith("create"):
            raise ending

    station.before_call = note
    tools = Tools(station, BackendHttp(station), station.clock, uninterrupted=uninterrupted)
    with pytest.raises((BootFailedError, LaunchInterruptedError)):
        execute(plan_launch(V14, tools, replace=True), V14, tools)
    first = next(at for at, (_, is_deaf) in enumerate(heard) if is_deaf)
    assert {is_deaf for _, is_deaf in heard[first:]} == {True}
    assert [call for call, _ in heard[first:]][-2:] == ["start dsv41-vllm", "restart dsv41-vllm unless-stopped"]


def test_a_failed_boot_under_a_policy_loses_it_first() -> None:
    station = backend(FAILS)

    def set_by_somebody(announcement: Announcement) -> None:
        if isinstance(announcement, StepBegan) and isinstance(announcement.step, AwaitReady):
            station.set_restart("dsv41-vllm", "always")

    tools = Tools(station, BackendHttp(station), station.clock, set_by_somebody)
    with pytest.raises(BootFailedError):
        execute(plan_launch(V14, tools), V14, tools)
    (failed,) = station.containers()
    assert (failed.restart_policy, failed.state) == ("no", "exited")
    assert failed.name.startswith("dsv41-vllm-failed-")


def test_what_runs_already_is_found_under_any_name() -> None:
    station = backend()
    running = up(V14, station, FakeLock()).container
    station.rename(running.id, "other")
    tools = Tools(station, BackendHttp(station), station.clock, lock=FakeLock())
    found = execute(detached(plan_launch(V14, tools)), V14, tools)
    assert (found.container.id, found.container.name, found.served) == (running.id, "other", None)
