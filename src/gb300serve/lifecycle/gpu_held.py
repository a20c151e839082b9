"""How much of the GPU's memory containers hold, as far as the driver tells."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gb300serve.host.facts import GpuHolder
from gb300serve.host.missing import Missing
from gb300serve.host.sources.gpu_state import GpuState
from gb300serve.preflight.selection import principal
from gb300serve.preflight.sizes import gib


@dataclass(frozen=True, slots=True)
class GpuHeld:
    """Bytes by container id, and what is in use altogether of the GPU with the most memory.

    `missing` says why nothing is known.
    """

    containers: Mapping[str, int] = field(default_factory=dict)
    in_use: int | None = None
    missing: str | None = None

    def sentence(self, container: str) -> str:
        """What is known of one container, by id: a clause."""
        if container in self.containers:
            return f"it holds {gib(self.containers[container])} of the GPU's memory"
        unknown = "how much of the GPU's memory it holds was not checked"
        if self.missing is not None:
            return f"{unknown} ({self.missing})"
        if self.in_use is None:
            return f"{unknown} (the driver does not say)"
        return f"{gib(self.in_use)} of the GPU's memory are in use, and which process is its own cannot be told"


class GpuMemory(Protocol):
    """The GPU of the machine that runs the containers. Asking takes a process or two of nvidia-smi."""

    def held(self) -> GpuHeld: ...


def told_by(gpus: tuple[GpuState, ...] | Missing, processes: tuple[GpuHolder, ...] | Missing) -> GpuHeld:
    """From the host's facts."""
    large = () if isinstance(gpus, Missing) else principal(gpus)
    in_use = large[0].used if large else None
    if isinstance(processes, Missing):
        return GpuHeld(in_use=in_use, missing=None if in_use is not None else processes.why)
    found: dict[str, int] = {}
    for each in processes:
        if each.container is not None and each.process.used is not None:
            found[each.container] = found.get(each.container, 0) + each.process.used
    return GpuHeld(found, in_use, gpus.why if isinstance(gpus, Missing) and not found else None)
