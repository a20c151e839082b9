"""Processes of this machine. The only importer of subprocess."""

import os
import socket
import subprocess
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gb300serve.lifecycle.down import GpuProcess, SharedFile

PROC = Path("/proc")
# Bytes of standard error that are quoted when a program fails.
_ERROR_BYTES = 2000


class SystemProcesses:
    """Implements `Processes`: on Linux with /proc, elsewhere with `ps`."""

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
        # It outlives this process: without a return code, Popen would warn that it still runs.
        process.returncode = 0
        return process.pid

    def start_mark(self, pid: int) -> str | None:
        with suppress(ChildProcessError):  # reap an ended child; other processes are not affected
            os.waitpid(pid, os.WNOHANG)
        return _mark_from_proc(pid) if PROC.joinpath("self/stat").exists() else _mark_from_ps(pid)

    def kill(self, pid: int, signal: int) -> bool:
        try:
            os.kill(pid, signal)
        except ProcessLookupError:
            return False
        return True


def output(argv: tuple[str, ...], timeout: float) -> str | None:
    """The standard output of a program; None if it is not found, fails, or takes too long."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")


def spoken(argv: tuple[str, ...], timeout: float) -> tuple[int, str]:
    """Exit code, and standard output or else standard error. Raises TimeoutError, or OSError if it cannot start."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{argv[0]}: {timeout:g} s") from error
    return done.returncode, (done.stdout or done.stderr).decode("utf-8", "replace")


class Conversation(socket.socket):
    """A socket to a program's standard input and output; if it ends without output, its standard error is raised.

    Closing the socket ends the program's input. Ctrl-C does not reach the program, so that cleanup can still use it.
    """

    def __init__(self, argv: tuple[str, ...]) -> None:
        ours, its = socket.socketpair()
        super().__init__(fileno=ours.detach())
        self._has_received = False
        # A pipe that nobody reads would block the program once it is full.
        self._error_file, path = tempfile.mkstemp()
        os.unlink(path)  # noqa: PTH108 - the path is a str
        weakref.finalize(self, os.close, self._error_file)
        with its:
            process = subprocess.Popen(
                argv, stdin=its.fileno(), stdout=its.fileno(), stderr=self._error_file, start_new_session=True
            )
        process.returncode = 0

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Raises ConnectionError with the program's standard error if it has ended before any output."""
        try:
            super().sendall(data, flags)
        except ConnectionError as error:
            broken = error
        else:
            return
        raise self._last_words() or broken

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Raises ConnectionError with the program's standard error if it ends before any output."""
        reset: ConnectionError | None = None
        count = 0
        try:
            count = super().recv_into(buffer, nbytes, flags)
        except ConnectionError as error:  # it ended before it read all of its input
            reset = error
        if not count and (words := self._last_words()):
            raise words
        if reset is not None:
            raise reset
        self._has_received = True
        return count

    def _last_words(self) -> ConnectionError | None:
        message = " ".join(os.pread(self._error_file, _ERROR_BYTES, 0).decode("utf-8", "replace").split())
        return ConnectionError(message) if message and not self._has_received else None


def connect(argv: tuple[str, ...]) -> socket.socket:
    """Start `argv`; the returned socket is its standard input and output."""
    return Conversation(argv)


def _mark_from_proc(pid: int) -> str | None:
    """Boot ID and start time in clock ticks (field 22 of /proc/PID/stat; proc(5))."""
    try:
        stat = PROC.joinpath(str(pid), "stat").read_text(encoding="utf-8", errors="replace")
        boot = PROC.joinpath("sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses, which may contain spaces and parentheses.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot}/{fields[18]}"


def _mark_from_ps(pid: int) -> str | None:
    """The start time in seconds, as `ps` of macOS and the BSDs prints it."""
    argv, env = ("ps", "-o", "stat=,lstart=", "-p", str(pid)), {"LC_ALL": "C", "PATH": "/bin:/usr/bin"}
    result = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    state, _, started = result.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else started.strip()


QUERY = ("nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader")
PATIENCE = 10.0
SHM = Path("/dev/shm")  # noqa: S108 - the POSIX shared memory; only read


class SystemResidue:
    """Implements `lifecycle.down.ResidueProbe`."""

    def __init__(self, proc: Path = PROC, shm: Path = SHM) -> None:
        self._proc = proc
        self._shm = shm

    def gpu_processes(self) -> tuple[GpuProcess, ...] | None:
        text = output(QUERY, PATIENCE)
        return None if text is None else processes(text)

    def inside(self, container: str, pids: Iterable[int]) -> frozenset[int]:
        return frozenset(pid for pid in pids if container in self._groups(pid))

    def shared(self) -> tuple[SharedFile, ...] | None:
        try:
            paths = sorted(self._shm.iterdir())
        except OSError:
            return None
        made = ((path.name, _made_at(path)) for path in paths)
        return tuple(SharedFile(name, at) for name, at in made if at is not None)

    def _groups(self, pid: int) -> str:
        """The name of a control group contains the ID of its container."""
        try:
            return (self._proc / str(pid) / "cgroup").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


def processes(text: str) -> tuple[GpuProcess, ...]:
    """Parse lines such as `4711, VLLM::EngineCore, 236544 MiB`; other lines are skipped."""
    rows = (line.split(", ") for line in text.splitlines())
    return tuple(
        GpuProcess(int(row[0]), ", ".join(row[1:-1]), row[-1]) for row in rows if len(row) > 2 and row[0].isdecimal()
    )


def _made_at(path: Path) -> float | None:
    try:
        return path.stat().st_ctime
    except OSError:
        return None
