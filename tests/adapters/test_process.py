import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gb300serve.adapters.process import SystemProcesses, SystemResidue, connect, processes
from gb300serve.lifecycle.down import GpuProcess


def wait_until(done: Callable[[], bool]) -> None:
    """A minute at most, far beyond what starting or ending a process takes."""
    for _ in range(600):
        if done():
            return
        time.sleep(0.1)
    pytest.fail("it did not happen within a minute")


PROCESSES = SystemProcesses()
SLEEP = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)")


def test_a_process_lives_in_a_session_of_its_own_until_it_is_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    pid = PROCESSES.spawn(SLEEP, {}, log)
    try:
        mark = PROCESSES.start_mark(pid)
        assert mark is not None
        assert os.getsid(pid) == pid
        wait_until(lambda: log.read_text() == "up\n")
        assert PROCESSES.start_mark(pid) == mark
    finally:
        assert PROCESSES.kill(pid, signal.SIGKILL)
    wait_until(lambda: PROCESSES.start_mark(pid) is None)
    assert not PROCESSES.kill(pid, signal.SIGTERM)


def test_it_sees_the_environment_it_is_given_and_appends_both_streams(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    program = "import os, sys; print(os.environ, flush=True); print(sys.stdin.read(), 'err', file=sys.stderr)"
    pid = PROCESSES.spawn((sys.executable, "-c", program), {"A": "1", "LC_ALL": "C.UTF-8"}, log)
    wait_until(lambda: PROCESSES.start_mark(pid) is None)
    assert log.read_text() == "before\nenviron({'A': '1', 'LC_ALL': 'C.UTF-8'})\n err\n"


def test_two_processes_have_two_marks(tmp_path: Path) -> None:
    first = PROCESSES.spawn(SLEEP, {}, tmp_path / "first")
    time.sleep(0.02)  # a clock tick is a hundredth of a second
    second = PROCESSES.spawn(SLEEP, {}, tmp_path / "second")
    marks = {PROCESSES.start_mark(first), PROCESSES.start_mark(second)}
    PROCESSES.kill(first, signal.SIGKILL)
    PROCESSES.kill(second, signal.SIGKILL)
    assert len(marks - {None}) == 2


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        PROCESSES.spawn((str(tmp_path / "nothing"),), {}, tmp_path / "log")


def test_a_connection_to_a_program() -> None:
    program = "import sys; [print(line.strip()[::-1], flush=True) for line in sys.stdin]"
    with connect((sys.executable, "-c", program)) as connection:
        connection.sendall(b"abc\n")
        assert connection.recv(4, socket.MSG_WAITALL) == b"cba\n"


@pytest.mark.parametrize("reads", ["", "import sys; sys.stdin.readline(); "])
def test_a_program_that_ends_without_a_word_says_why(reads: str) -> None:
    program = f"{reads}raise SystemExit('no route to\\n the station')"

    def converse() -> None:
        with connect((sys.executable, "-c", program)) as connection, connection.makefile("rb") as answer:
            connection.sendall(b"abc\n")  # it may have ended by now
            answer.readline()

    with pytest.raises(ConnectionError, match=r"^no route to the station$") as ended:
        converse()
    assert ended.value.__context__ is None  # the words are the first cause


def test_a_program_that_has_ended_before_it_is_asked_says_why() -> None:
    def ask_until_it_has_ended() -> None:
        with connect((sys.executable, "-c", "raise SystemExit('no route to the station')")) as connection:
            while True:
                connection.sendall(b"abc\n")

    with pytest.raises(ConnectionError, match=r"^no route to the station$"):
        ask_until_it_has_ended()


def test_what_a_program_complains_of_beside_its_answer_is_not_an_error() -> None:
    program = "import sys; print('known hosts: added', file=sys.stderr); print('abc')"
    with connect((sys.executable, "-c", program)) as connection, connection.makefile("rb") as answer:
        assert answer.readlines() == [b"abc\n"]


SAID = """\
4711, VLLM::EngineCore, 236544 MiB
4712, /usr/bin/a, b, [N/A]
No running processes found
"""


def test_compute_processes() -> None:
    assert processes(SAID) == (
        GpuProcess(4711, "VLLM::EngineCore", "236544 MiB"),
        GpuProcess(4712, "/usr/bin/a, b", "[N/A]"),
    )
    assert str(processes(SAID)[0]) == "process 4711 (VLLM::EngineCore) holds 236544 MiB"
    assert processes("") == ()


def test_processes_of_a_container_are_known_by_their_control_group(tmp_path: Path) -> None:
    for pid, group in (("1", "0::/system.slice/docker-abc123.scope\n"), ("2", "0::/user.slice\n")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cgroup").write_text(group)
    assert SystemResidue(proc=tmp_path).inside("abc123", (1, 2, 3)) == {1}


def test_shared_memory(tmp_path: Path) -> None:
    (tmp_path / "psm_1").write_text("")
    found = SystemResidue(shm=tmp_path).shared()
    assert found is not None
    assert [(each.name, each.made_at) for each in found] == [("psm_1", (tmp_path / "psm_1").stat().st_ctime)]
    assert SystemResidue(shm=tmp_path / "nowhere").shared() is None
