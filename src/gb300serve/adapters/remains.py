"""What is left on this machine, on Linux: the driver's list of processes, /proc and /dev/shm."""

from collections.abc import Iterable
from pathlib import Path

from gb300serve.adapters.process import output
from gb300serve.lifecycle.leftovers import GpuProcess, SharedFile

QUERY = ("nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader")
PATIENCE = 10.0
PROC = Path("/proc")
SHM = Path("/dev/shm")  # noqa: S108 - where POSIX shared memory is; nothing is written there


class SystemRemains:
    """`lifecycle.leftovers.Remains`."""

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
