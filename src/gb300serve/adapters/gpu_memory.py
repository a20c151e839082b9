"""The GPU's memory on this machine, as `lifecycle.gpu_held.GpuMemory`."""

from gb300serve.host.collect import compute_processes, gpu_states
from gb300serve.host.ports import Machine
from gb300serve.lifecycle.gpu_held import GpuHeld, told_by


class HostGpuMemory:
    """Asks nvidia-smi for memory and processes, and /proc for the container of each."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def held(self) -> GpuHeld:
        return told_by(gpu_states(self._machine), compute_processes(self._machine))
