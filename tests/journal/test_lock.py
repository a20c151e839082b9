"""The lock of lanes: between objects, between processes, and after a kill."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gb300serve.adapters.system import SystemDisk
from gb300serve.journal.journal import Requester
from gb300serve.journal.lock import LaneHeldError, LaneLock
from tests.support.entries import ALICE
from tests.support.fake_clock import FakeClock
from tests.support.faulty_disk import FaultyDisk
from tests.support.program import ROOT

BOB = Requester("bob", "station", 12)


def lock(directory: Path, command: str = "up v14", by: Requester = ALICE, clock: FakeClock | None = None) -> LaneLock:
    return LaneLock(directory / "state" / "docker.lock", SystemDisk(), clock or FakeClock(), command, by)


def test_the_second_is_told_who_is_at_it(tmp_path: Path) -> None:
    held, clock = lock(tmp_path), FakeClock()
    held.acquire(0.0)
    held.acquire(0.0)  # holding it already
    with pytest.raises(LaneHeldError) as caught:
        lock(tmp_path, "down", BOB, clock).acquire(10.0)
    assert caught.value.exit_code == 6
    assert caught.value.message == (
        "gb300serve up v14 (alice@station, process 4711, since 2026-11-29T19:50:03.000Z) is changing the "
        "running lanes; nothing was done"
    )
    assert clock.now() - FakeClock().now() == pytest.approx(10.0, abs=0.1)


def test_a_lock_that_is_let_go_is_free_at_once(tmp_path: Path) -> None:
    held, other = lock(tmp_path), lock(tmp_path, "down", BOB)
    held.acquire(0.0)
    held.release()
    held.release()  # nothing to let go
    other.acquire(0.0)
    with pytest.raises(LaneHeldError, match="gb300serve down"):
        held.acquire(0.0)


def test_a_launch_goes_on_where_its_state_directory_cannot_be_written_any_more(tmp_path: Path) -> None:
    held = lock(tmp_path)
    held.acquire(0.0)
    held.release()
    (tmp_path / "state").rename(tmp_path / "gone")
    (tmp_path / "state").write_text("")
    held.acquire(0.0)
    held.release()
    with pytest.raises(NotADirectoryError):
        lock(tmp_path).acquire(0.0)


def test_a_stop_by_another_command_is_remembered(tmp_path: Path) -> None:
    clock = FakeClock()
    watching = lock(tmp_path, clock=clock)
    clock.sleep(5.0)
    other = lock(tmp_path, "down v14", BOB, clock)
    other.acquire(0.0)
    other.stopping("id-v14")
    other.release()
    watching.acquire(0.0)
    assert (
        watching.stopped_by("id-v14") == "gb300serve down v14 (bob@station, process 12, since 2026-11-29T19:50:08.000Z)"
    )
    assert watching.stopped_by("id-v13") is None
    clock.sleep(5.0)
    assert lock(tmp_path, clock=clock).stopped_by("id-v14") is None, "it was before this command began"


def test_ones_own_stop_is_no_surprise(tmp_path: Path) -> None:
    own = lock(tmp_path)
    own.acquire(0.0)
    own.stopping("id-v13")
    assert own.stopped_by("id-v13") is None


def test_a_torn_file_and_a_full_disk_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "docker.lock").write_text('{"holder": {"command": "up')
    disk = FaultyDisk(2)
    held = LaneLock(tmp_path / "state" / "docker.lock", disk, FakeClock(), "up v14", ALICE)
    held.acquire(0.0)
    assert disk.is_full
    with pytest.raises(LaneHeldError, match=r"^another gb300serve is changing the running lanes"):
        lock(tmp_path, "down", BOB).acquire(0.0)


HOLDER = """
import sys
from pathlib import Path
from gb300serve.adapters.system import SystemClock
from gb300serve.adapters.system import SystemDisk
from gb300serve.journal.lock import LaneLock
from tests.support.entries import ALICE
LaneLock(Path(sys.argv[1]) / "state" / "docker.lock", SystemDisk(), SystemClock(), "up v13", ALICE).acquire(0.0)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_killed_holders_lock_is_free_at_once(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLDER, str(tmp_path)]
    paths = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    with subprocess.Popen(words, env=paths, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LaneHeldError, match="gb300serve up v13"):
            lock(tmp_path, by=BOB).acquire(0.0)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    lock(tmp_path, by=BOB).acquire(0.0)
