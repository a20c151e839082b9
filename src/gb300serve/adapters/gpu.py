"""How busy the large GPU of this machine is, from nvidia-smi; asked rarely, as each answer takes a process."""

from collections.abc import Callable

from gb300serve.adapters.process import output
from gb300serve.core.ports import Clock
from gb300serve.host.collect import compute_processes, gpu_states
from gb300serve.host.ports import Machine
from gb300serve.lifecycle.backend import GpuHeld, told_by


class HostGpuMemory:
    """Asks nvidia-smi for memory and processes, and /proc for the container of each."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def held(self) -> GpuHeld:
        return told_by(gpu_states(self._machine), compute_processes(self._machine))


_ARGV = ("nvidia-smi", "--query-gpu=memory.total,utilization.gpu", "--format=csv,noheader,nounits")
_PATIENCE = 5.0
# Seconds on the wall that an answer stands.
_FRESH = 10.0


def busy(text: str) -> float | None:
    """0 to 1 for the GPU with the most memory: the other one of a Station draws the screen. None where none tells."""
    found = [_row(line) for line in text.splitlines()]
    return max((row for row in found if row is not None), default=(0.0, None))[1]


def _row(line: str) -> tuple[float, float] | None:
    memory, _, use = line.partition(",")
    try:
        return float(memory), float(use) / 100
    except ValueError:
        return None  # `[N/A]`, `[Not Supported]`


class GpuUse:
    """Called for 0 to 1, or None where nobody can tell."""

    def __init__(self, clock: Clock, ask: Callable[[tuple[str, ...], float], str | None] = output) -> None:
        self._clock = clock
        self._ask = ask
        self._asked_at: float | None = None
        self._found: float | None = None

    def __call__(self) -> float | None:
        now = self._clock.now()
        if self._asked_at is None or now >= self._asked_at + _FRESH:
            self._asked_at = now
            self._found = busy(self._ask(_ARGV, _PATIENCE) or "")
        return self._found
