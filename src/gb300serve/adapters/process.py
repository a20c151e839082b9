"""Processes of this machine. The only importer of subprocess."""

import os
import socket
import subprocess
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gb300serve.lifecycle.down import GpuProcess, SharedFile

PROC = Path("/proc")
# Bytes of its standard error that say why a program ended.
_COMPLAINT = 2000


class SystemProcesses:
    """`core.process.Processes`, on Linux through /proc and elsewhere through `ps`."""

    def spawn(self, argv: tuple[str, ...], env: Mapping[str, str], log: Path) -> int:
        with log.open("ab") as output:
            process = subprocess.Popen(
                argv,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # It is to outlive us: without this, Popen warns that it still runs.
        process.returncode = 0
        return process.pid

    def start_mark(self, pid: int) -> str | None:
        _reap(pid)
        return _mark_from_proc(pid) if PROC.joinpath("self/stat").exists() else _mark_from_ps(pid)

    def kill(self, pid: int, signal: int) -> bool:
        try:
            os.kill(pid, signal)
        except ProcessLookupError:
            return False
        return True


def output(argv: tuple[str, ...], timeout: float) -> str | None:
    """The standard output of a program that ends by itself; None when it is not there, fails, or takes too long."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")


def spoken(argv: tuple[str, ...], timeout: float) -> tuple[int, str]:
    """Exit code and what a program that ends by itself said: its standard output, else its standard error.

    TimeoutError when it takes too long, OSError when it cannot be started.
    """
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{argv[0]}: {timeout:g} s") from error
    return done.returncode, (done.stdout or done.stderr).decode("utf-8", "replace")


class Conversation(socket.socket):
    """The near end of a program's standard input and output. Where it ends without a word, its standard error is why.

    The program ends when this is closed, if it heeds the end of its input; a Ctrl-C at the terminal does not reach it,
    so that a lane can be left in order.
    """

    def __init__(self, argv: tuple[str, ...]) -> None:
        ours, its = socket.socketpair()
        super().__init__(fileno=ours.detach())
        self._heard = False
        # A pipe that nobody reads would stop a program that says much.
        self._complaints, path = tempfile.mkstemp()
        os.unlink(path)  # noqa: PTH108 - the path is a text
        weakref.finalize(self, os.close, self._complaints)
        with its:
            process = subprocess.Popen(
                argv, stdin=its.fileno(), stdout=its.fileno(), stderr=self._complaints, start_new_session=True
            )
        process.returncode = 0

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """As a socket's; ConnectionError with the program's words where it ends before it has said anything."""
        reset: ConnectionError | None = None
        count = 0
        try:
            count = super().recv_into(buffer, nbytes, flags)
        except ConnectionError as error:  # it ended before it had read all that it was told
            reset = error
        if not count and not self._heard and (said := self._said()):
            raise ConnectionError(said)
        if reset is not None:
            raise reset
        self._heard = True
        return count

    def _said(self) -> str:
        return " ".join(os.pread(self._complaints, _COMPLAINT, 0).decode("utf-8", "replace").split())


def connect(argv: tuple[str, ...]) -> socket.socket:
    """Start `argv` with both its standard input and output at the other end of the socket that is returned."""
    return Conversation(argv)


def _reap(pid: int) -> None:
    """Take leave of a child of ours that has ended; of any other process this knows nothing."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def _mark_from_proc(pid: int) -> str | None:
    """The boot and the clock tick at which it started (field 22 of /proc/PID/stat; proc(5))."""
    try:
        stat = PROC.joinpath(str(pid), "stat").read_text(encoding="utf-8", errors="replace")
        boot = PROC.joinpath("sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses and may itself hold blanks and parentheses.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot}/{fields[18]}"


def _mark_from_ps(pid: int) -> str | None:
    """The second at which it started, as `ps` of macOS and the BSDs prints it."""
    words = ("ps", "-o", "stat=,lstart=", "-p", str(pid))
    answer = subprocess.run(
        words, capture_output=True, text=True, check=False, env={"LC_ALL": "C", "PATH": "/bin:/usr/bin"}
    )
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else started.strip()


QUERY = ("nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader")
PATIENCE = 10.0
SHM = Path("/dev/shm")  # noqa: S108 - where POSIX shared memory is; nothing is written there


class SystemResidue:
    """`lifecycle.down.ResidueProbe`."""

    def __init__(self, proc: Path = PROC, shm: Path = SHM) -> None:
        self._proc = proc
        self._shm = shm

    def gpu_processes(self) -> tuple[GpuProcess, ...] | None:
        said = output(QUERY, PATIENCE)
        return None if said is None else processes(said)

    def inside(self, container: str, pids: Iterable[int]) -> frozenset[int]:
        return frozenset(pid for pid in pids if container in self._groups(pid))

    def shared(self) -> tuple[SharedFile, ...] | None:
        try:
            found = tuple(self._shm.iterdir())
        except OSError:
            return None
        made = ((path.name, _made_at(path)) for path in sorted(found))
        return tuple(SharedFile(name, at) for name, at in made if at is not None)

    def _groups(self, pid: int) -> str:
        """Control groups are named after the containers that they were made for."""
        try:
            return (self._proc / str(pid) / "cgroup").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


def processes(said: str) -> tuple[GpuProcess, ...]:
    """Lines such as `4711, VLLM::EngineCore, 236544 MiB`; what is none is passed over."""
    rows = (line.split(", ") for line in said.splitlines())
    return tuple(
        GpuProcess(int(row[0]), ", ".join(row[1:-1]), row[-1]) for row in rows if len(row) > 2 and row[0].isdecimal()
    )


def _made_at(path: Path) -> float | None:
    try:
        return path.stat().st_ctime
    except OSError:
        return None
