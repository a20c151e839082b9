import hashlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gb300serve.adapters.process import SystemProcesses
from gb300serve.adapters.system import SystemClock
from gb300serve.lifecycle.backend import LogLine
from gb300serve.plan.model import Mount, Plan
from gb300serve.simulator.station import Rehearsal, SimulatedStation, busy_seconds
from tests.support.backend_contract import LABELS
from tests.support.free_port import free_port
from tests.support.launches import plan as v14
from tests.support.simulated import V14, V14_MOUNTS

FAST = 20_000.0
PINNED = "ab" * 32


def plan() -> Plan:
    base, port = v14(), free_port()
    mounts = (*V14_MOUNTS, Mount("/nowhere/hook.py", "/w/hook.py", read_only=True, sha256=PINNED))
    return replace(
        base, command=(*V14, "--port", str(port)), port=port, container=replace(base.container, mounts=mounts)
    )


def station(directory: Path, fault: str | None = None) -> SimulatedStation:
    return SimulatedStation(directory, SystemProcesses(), SystemClock(), sys.executable, Rehearsal(FAST, fault))


@pytest.fixture
def running(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SimulatedStation]:
    """A container of v14, started with the fault that the test names."""
    found = station(tmp_path / "sim", getattr(request, "param", None))
    launched = plan()
    found.create(launched, LABELS, {})
    found.start(launched.container.name)
    yield found
    found.stop(launched.container.name, 0.0)


def test_its_process_is_the_engine(running: SimulatedStation) -> None:
    (pid,) = running.processes("dsv41-vllm")
    assert "simulator" in Path(f"/proc/{pid}/cmdline").read_text()


def test_a_boot_computes(running: SimulatedStation) -> None:
    first = running.vitals("dsv41-vllm")
    assert first.cpu_seconds is not None
    later = running.vitals("dsv41-vllm").cpu_seconds
    assert later is not None
    assert 0 < first.cpu_seconds < later
    assert running.stacks("dsv41-vllm") is None


@pytest.mark.parametrize("running", ["stall"], indirect=True)
def test_a_stall_computes_nothing(running: SimulatedStation) -> None:
    lines = running.follow("dsv41-vllm", 0.01)
    assert any(line is not None and "No available shared memory" in line.text for line in lines)
    first, second = running.vitals("dsv41-vllm"), running.vitals("dsv41-vllm")
    assert first == second
    assert first.gpu == 0.0
    stack = running.stacks("dsv41-vllm")
    assert stack is not None
    assert "load_weights" in stack


def test_a_pinned_file_is_there_as_every_path_is(running: SimulatedStation) -> None:
    assert running.file_sha256("dsv41-vllm", "/w/hook.py") == PINNED
    assert running.file_sha256("dsv41-vllm", "/w/other.py") is None


@pytest.mark.parametrize("running", ["patch-differs"], indirect=True)
def test_a_patch_that_differs(running: SimulatedStation) -> None:
    assert running.file_sha256("dsv41-vllm", "/w/hook.py") not in {None, PINNED}


def test_a_file_that_this_machine_has_is_read(tmp_path: Path) -> None:
    (tmp_path / "hook.py").write_text("pass\n")
    found, base = station(tmp_path / "sim"), plan()
    mounts = (Mount(str(tmp_path), "/w", read_only=True, sha256={"hook.py": PINNED}),)
    found.create(replace(base, container=replace(base.container, mounts=mounts)), LABELS, {})
    assert found.file_sha256("dsv41-vllm", "/w/hook.py") == hashlib.sha256(b"pass\n").hexdigest()


def test_heartbeats_are_no_work() -> None:
    beat = "(EngineCore pid=364) INFO [shm_broadcast.py:801] No available shared memory broadcast block found"
    assert busy_seconds([LogLine("Loading", 74.0), LogLine(beat, 134.0)]) == 74.0
    assert busy_seconds([]) == 0.0
