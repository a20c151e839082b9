"""Where containers run: the Docker Engine and the simulated Station of one Station of the site."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from gb300serve.adapters.docker.backend import DockerBackend
from gb300serve.adapters.docker.client import DockerEndpoint, DockerEngine
from gb300serve.adapters.host import GpuUse, HostGpuMemory, SystemListeners, SystemMachine
from gb300serve.adapters.http import HttpClient
from gb300serve.adapters.process import SystemProcesses, SystemResidue
from gb300serve.adapters.system import SystemClock, uninterrupted
from gb300serve.app.workspace import Workspace, state_directory
from gb300serve.core.errors import BackendError
from gb300serve.journal.lock import LaneLock
from gb300serve.lifecycle.backend import ContainerBackend, GpuMemory, Listeners
from gb300serve.lifecycle.down import ResidueProbe
from gb300serve.lifecycle.events import Announcement
from gb300serve.lifecycle.tools import NoLock, Tools
from gb300serve.plan.model import Plan
from gb300serve.recipe.model import MemorySection
from gb300serve.simulator.station import Rehearsal, SimulatedStation

On = Literal["docker", "sim"]
SIM_SPEED = 200.0
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ContainerHost:
    """A host that runs containers. What cannot be inspected from here is None."""

    on: On
    backend: ContainerBackend
    clock: SystemClock
    http: HttpClient
    is_local: bool
    listeners: Listeners | None
    gpu: GpuMemory | None
    residue: ResidueProbe | None
    neighbours: tuple[ContainerBackend, ...]
    """Other hosts on this machine: their lanes exclude ours by port only."""

    def tools(self, announce: Callable[[Announcement], None] = lambda _: None, lock: LaneLock | None = None) -> Tools:
        return Tools(
            self.backend,
            self.http,
            self.clock,
            announce,
            lock=lock or NoLock(),
            uninterrupted=uninterrupted,
            listeners=self.listeners,
            gpu=self.gpu,
        )


@dataclass
class Hosts:
    """Builds the container hosts of a workspace on demand."""

    workspace: Workspace
    rehearsal: Rehearsal = field(default_factory=Rehearsal)

    @cached_property
    def endpoint(self) -> DockerEndpoint:
        """The Docker Engine of the site, else that of the docker client. Raises BackendError."""
        environment, chosen = self.workspace.environment, self.workspace.site(None).docker
        if chosen.host or chosen.context:
            return DockerEndpoint.choose(chosen.host, chosen.context)
        return DockerEndpoint.choose(environment.docker_host, environment.docker_context)

    @property
    def simulated_directory(self) -> Path:
        return state_directory(self.workspace) / "sim"

    @property
    def docker_address(self) -> str | None:
        """None if the docker context cannot be read."""
        reached = self._reached
        return reached.host if reached else None

    def names(self, on: On | None) -> tuple[On, ...]:
        """The hosts to query; a missing simulated Station is not created."""
        if on is not None:
            return (on,)
        return ("docker", "sim") if self.simulated_directory.is_dir() else ("docker",)

    def is_local(self, on: On) -> bool:
        """Whether its containers run on this machine and use its files, GPUs and sockets."""
        reached = None if on == "sim" else self._reached
        return reached is None or reached.is_here

    def address(self, on: On) -> str:
        """The address of its lanes for clients: the site's `address`, else the machine of the Docker Engine."""
        if on == "sim":
            return LOOPBACK
        return self.workspace.site(None).address or (self._reached and self._reached.hostname) or LOOPBACK

    def at(self, on: On, plan: Plan | None = None, memory: MemorySection | None = None) -> ContainerHost:
        """`plan` and the recipe's `memory`: the launch to simulate.

        Raises BackendError for an unreadable docker context.
        """
        local, docker = self.is_local(on), on == "docker"
        return ContainerHost(
            on,
            self._docker if docker else self._simulated(plan, memory),
            SystemClock(),
            HttpClient(),
            is_local=local,
            listeners=SystemListeners() if local else None,
            gpu=HostGpuMemory(self.machine) if docker and local else None,
            residue=SystemResidue() if docker and local else None,
            neighbours=self.neighbours(on),
        )

    def neighbours(self, on: On) -> tuple[ContainerBackend, ...]:
        """The simulated Station next to a local Docker Engine."""
        beside = on == "docker" and self.simulated_directory.is_dir() and self.is_local(on)
        return (self._simulated(None),) if beside else ()

    @cached_property
    def machine(self) -> SystemMachine:
        return SystemMachine(self.workspace.environment.variables.get("PATH", ""))

    @property
    def _reached(self) -> DockerEndpoint | None:
        try:
            return self.endpoint
        except BackendError:
            return None

    @cached_property
    def _docker(self) -> ContainerBackend:
        clock = SystemClock()
        if not self.is_local("docker"):
            return DockerBackend(DockerEngine(self.endpoint), clock)
        return DockerBackend(DockerEngine(self.endpoint), clock, GpuUse(clock), self.machine)

    def _simulated(self, plan: Plan | None, memory: MemorySection | None = None) -> ContainerBackend:
        rehearsal = self.rehearsal
        if memory is not None:
            rehearsal = replace(rehearsal, memory=memory.model_dump(exclude_none=True))
        if plan is not None:
            ids = {plan.image: plan.image_id} if plan.image_id else {}
            rehearsal = replace(rehearsal, image_ids=ids, afflicts=plan)
        python = str(self.workspace.environment.python)
        return SimulatedStation(self.simulated_directory, SystemProcesses(), SystemClock(), python, rehearsal)
