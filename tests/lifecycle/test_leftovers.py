from collections.abc import Iterable
from dataclasses import dataclass, field

from gb300serve.lifecycle.down import GpuProcess, Leftovers, SharedFile, Watcher, down
from gb300serve.lifecycle.tools import Tools
from tests.support.fake_clock import START, FakeClock
from tests.support.fake_http import FixedHttp
from tests.support.launches import SERVES, backend, container, launch

CORE = GpuProcess(4711, "VLLM::EngineCore", "236544 MiB")
OTHER = GpuProcess(12, "python", "500 MiB")
V14 = container(launch())


@dataclass
class FakeRemains:
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
    watcher = Watcher(V14, FakeRemains(clock, START + 7.0), clock)
    assert watcher.after() == Leftovers(gpu_checked=True)
    assert clock.now() == START + 7.0


def test_who_survives_is_named_and_others_are_not() -> None:
    clock = FakeClock()
    assert Watcher(V14, FakeRemains(clock, START + 9e9), clock).after() == Leftovers((CORE,), gpu_checked=True)
    assert clock.now() == START + 30.0


def test_what_cannot_be_told_is_not_claimed() -> None:
    clock = FakeClock()
    assert Watcher(V14, FakeRemains(clock, known=False), clock).after() == Leftovers()
    assert clock.now() == START


def test_shared_memory_that_was_made_while_it_ran() -> None:
    clock = FakeClock()
    files = (
        SharedFile("psm_old", START - 7200.0),
        SharedFile("psm_new", START - 60.0),
        SharedFile("sem.mp-x", START),
        SharedFile("pulse-shm-1", START),
    )
    assert Watcher(V14, FakeRemains(clock, files=files), clock).after().shared == ("psm_new", "sem.mp-x")
    never = container(launch(), started_at=None, state="created")
    assert Watcher(never, FakeRemains(clock, files=files), clock).after().shared == ()


def test_down_looks_after_it_has_stopped() -> None:
    station = backend()
    serving = station.add(V14, SERVES)
    remains = FakeRemains(station.clock, START + 5.0)
    ended = down(serving, Tools(station, FixedHttp({}), station.clock), remains=remains)
    assert ended.leftovers == Leftovers(gpu_checked=True)
    assert station.clock.now() == START + 5.0
