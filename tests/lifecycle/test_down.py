from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from gb300serve.lifecycle.down import (
    GpuProcess,
    NotOursError,
    Residue,
    ResidueWatcher,
    SharedFile,
    StillRunningError,
    down,
    remove_failed,
)
from gb300serve.lifecycle.events import Announcement, StepBegan
from gb300serve.lifecycle.ready import ContainerGoneError
from gb300serve.lifecycle.tools import Tools
from tests.support.fake_backend import FakeBackend, Script
from tests.support.fake_clock import START, FakeClock
from tests.support.fake_http import FixedHttp
from tests.support.launches import SERVES, STRANGER, backend, container, launch

V14 = launch()


def tools_of(station: FakeBackend, told: list[Announcement] | None = None) -> Tools:
    heard: list[Announcement] = [] if told is None else told
    return Tools(station, FixedHttp({}), station.clock, heard.append)


def test_the_policy_goes_before_the_container_stops() -> None:
    station = backend()
    serving = station.add(container(V14, restart_policy="always"), SERVES)
    told: list[Announcement] = []
    ended = down(serving, tools_of(station, told))
    assert station.calls == ["restart dsv41-vllm no", "stop dsv41-vllm"]
    assert (ended.was_running, ended.killed, ended.removed) == (True, False, False)
    assert (ended.container.state, ended.container.exit_code) == ("exited", 0)
    assert [each.step.describe() for each in told if isinstance(each, StepBegan)] == [
        "set the restart policy of dsv41-vllm to no",
        "stop dsv41-vllm (SIGKILL after 30 s); the container is kept",
    ]


def test_an_engine_that_ignores_the_signal_is_killed_and_that_is_no_failure() -> None:
    station = backend()
    booting = station.add(container(V14, stop_timeout=45), replace(SERVES, stop_code=None))
    ended = down(booting, tools_of(station))
    assert (ended.killed, ended.container.exit_code, station.clock.now() - START) == (True, 137, 45.0)


def test_the_timeout_can_be_said() -> None:
    station = backend()
    down(station.add(container(V14, stop_timeout=45), Script(stop_code=None)), tools_of(station), timeout=2.0)
    assert station.clock.now() - START == 2.0


def test_what_does_not_run_is_said_to_not_run() -> None:
    station = backend()
    kept = station.add(container(V14, state="exited", finished_at=START, exit_code=137), SERVES)
    ended = down(kept, tools_of(station))
    assert (ended.was_running, ended.killed, ended.removed, station.calls) == (False, False, False, [])


def test_removing_stops_first() -> None:
    station = backend()
    ended = down(station.add(container(V14), SERVES), tools_of(station), remove=True)
    assert (ended.removed, ended.container.exit_code) == (True, 0)
    assert station.calls == ["stop dsv41-vllm", "remove dsv41-vllm"]
    assert station.containers() == ()


def test_strangers_are_left_alone() -> None:
    station = backend()
    with pytest.raises(NotOursError) as caught:
        down(station.add(STRANGER), tools_of(station), remove=True)
    assert caught.value.hint == "docker stop someone"
    assert station.calls == []


def test_what_is_gone_is_said_to_be_gone() -> None:
    with pytest.raises(ContainerGoneError):
        down(container(V14), tools_of(backend()))


def test_a_container_that_will_not_end_is_an_error() -> None:
    station = backend()
    stuck = station.add(container(V14), SERVES)
    station.stop = lambda container, timeout: None  # type: ignore[method-assign]  # an engine that only says so
    with pytest.raises(StillRunningError, match="dsv41-vllm is still running after it was stopped and killed"):
        down(stuck, tools_of(station))


def test_failed_boots_of_a_release_are_removed_together() -> None:
    station = backend()
    ended = {"state": "exited", "started_at": START - 60.0, "finished_at": START, "exit_code": 1}
    failed = "dsv41-vllm-failed-20261129T19500"
    for number in (1, 2):
        station.add(container(V14, id=f"failed-{number}", name=f"{failed}{number}Z", **ended))
    station.add(container(launch("v13"), id="failed-v13", name=f"{failed}9Z", **ended))
    station.add(replace(STRANGER, name=f"{failed}8Z", state="exited"))
    serving = station.add(container(V14), SERVES)
    assert remove_failed(serving, tools_of(station)) == (f"{failed}1Z", f"{failed}2Z")
    assert [each.id for each in station.containers()] == ["failed-v13", "id-stranger", "id-v14"]


CORE = GpuProcess(4711, "VLLM::EngineCore", "236544 MiB")
OTHER = GpuProcess(12, "python", "500 MiB")
V14_LEFTOVERS = container(launch())


@dataclass
class FakeResidueProbe:
    """`gone_at`: when the memory of the container's process is free."""

    clock: FakeClock
    gone_at: float = 0.0
    known: bool = True
    files: tuple[SharedFile, ...] = ()
    its: frozenset[int] = field(default_factory=lambda: frozenset({4711}))

    def gpu_processes(self) -> tuple[GpuProcess, ...] | None:
        if not self.known:
            return None
        return (OTHER,) if self.clock.now() >= self.gone_at else (CORE, OTHER)

    def inside(self, container: str, pids: Iterable[int]) -> frozenset[int]:
        return self.its & frozenset(pids)

    def shared(self) -> tuple[SharedFile, ...] | None:
        return self.files if self.known else None


def test_it_waits_until_the_memory_is_free() -> None:
    clock = FakeClock()
    watcher = ResidueWatcher(V14_LEFTOVERS, FakeResidueProbe(clock, START + 7.0), clock)
    assert watcher.after() == Residue(gpu_checked=True)
    assert clock.now() == START + 7.0


def test_who_survives_is_named_and_others_are_not() -> None:
    clock = FakeClock()
    assert ResidueWatcher(V14_LEFTOVERS, FakeResidueProbe(clock, START + 9e9), clock).after() == Residue(
        (CORE,), gpu_checked=True
    )
    assert clock.now() == START + 30.0


def test_what_cannot_be_told_is_not_claimed() -> None:
    clock = FakeClock()
    assert ResidueWatcher(V14_LEFTOVERS, FakeResidueProbe(clock, known=False), clock).after() == Residue()
    assert clock.now() == START


def test_shared_memory_that_was_made_while_it_ran() -> None:
    clock = FakeClock()
    files = (
        SharedFile("psm_old", START - 7200.0),
        SharedFile("psm_new", START - 60.0),
        SharedFile("sem.mp-x", START),
        SharedFile("pulse-shm-1", START),
    )
    assert ResidueWatcher(V14_LEFTOVERS, FakeResidueProbe(clock, files=files), clock).after().shared == (
        "psm_new",
        "sem.mp-x",
    )
    never = container(launch(), started_at=None, state="created")
    assert ResidueWatcher(never, FakeResidueProbe(clock, files=files), clock).after().shared == ()


def test_down_looks_after_it_has_stopped() -> None:
    station = backend()
    serving = station.add(V14_LEFTOVERS, SERVES)
    probe = FakeResidueProbe(station.clock, START + 5.0)
    ended = down(serving, Tools(station, FixedHttp({}), station.clock), probe=probe)
    assert ended.residue == Residue(gpu_checked=True)
    assert station.clock.now() == START + 5.0
