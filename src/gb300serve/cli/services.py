"""The composition root: adapters built for the verbs that act, and only for those."""

import gc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from gb300serve.adapters.clock import SystemClock
from gb300serve.adapters.docker_sdk import DockerEngine, Endpoint
from gb300serve.adapters.docker_watch import WatchedDocker
from gb300serve.adapters.http import HttpClient
from gb300serve.adapters.listeners import SystemListeners
from gb300serve.adapters.process import SystemProcesses
from gb300serve.cli.expecting import receipts_of, tuning_of
from gb300serve.cli.launchable import launchable, read_secrets, with_gpu
from gb300serve.cli.workspace import Workspace
from gb300serve.lifecycle.events import Announcement
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.ports import ContainerBackend, Listeners
from gb300serve.lifecycle.tools import Tools, unheard
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan
from gb300serve.recipe.model import Recipe
from gb300serve.simulator.station import Rehearsal, SimulatedStation
from gb300serve.simulator.station_watch import WatchedStation
from gb300serve.site.model import Site

gc.enable()  # a verb that acts may run for days

On = Literal["docker", "sim"]
SIM_SPEED = 200.0


@dataclass
class Services:
    """Everything outside, for one command."""

    space: Workspace
    rehearsal: Rehearsal = field(default_factory=Rehearsal)

    @cached_property
    def site(self) -> Site:
        return self.space.site(None)

    @cached_property
    def clock(self) -> SystemClock:
        return SystemClock()

    @cached_property
    def state(self) -> Path:
        """The state directory, made readable by the user alone."""
        path = (
            Path(self.site.state).expanduser() if self.site.state else self.space.environment.state_home / "gb300serve"
        )
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    @cached_property
    def endpoint(self) -> Endpoint:
        """The Docker Engine that the site names, else the one that Docker's own client would use."""
        environment, chosen = self.space.environment, self.site.docker
        if chosen.host or chosen.context:
            return Endpoint.choose(chosen.host, chosen.context)
        return Endpoint.choose(environment.docker_host, environment.docker_context)

    @cached_property
    def docker(self) -> ContainerBackend:
        return WatchedDocker(DockerEngine(self.endpoint), self.clock)

    @cached_property
    def simulated(self) -> SimulatedStation:
        return WatchedStation(
            self.state / "sim", SystemProcesses(), self.clock, str(self.space.environment.python), self.rehearsal
        )

    @cached_property
    def http(self) -> HttpClient:
        return HttpClient()

    @property
    def simulated_exists(self) -> bool:
        """Has anything ever been launched on the simulated Station?"""
        return (self.state / "sim").is_dir()

    def neighbours(self, on: On) -> tuple[ContainerBackend, ...]:
        """The other place on this machine: lanes there exclude ours only by port."""
        if on == "docker":
            return (self.simulated,) if self.simulated_exists else ()
        return ()

    def backend(self, on: On) -> ContainerBackend:
        return self.docker if on == "docker" else self.simulated

    def tools(self, on: On, announce: Callable[[Announcement], None] = unheard) -> Tools:
        return Tools(self.backend(on), self.http, self.clock, announce)

    def listeners(self, on: On) -> Listeners | None:
        """Sockets can be looked at where the containers run on this machine."""
        return SystemListeners() if on == "sim" or self.endpoint.host.startswith("unix://") else None

    def launch(self, ref: str, sets: list[str] | None, on: On) -> Launch:
        """The launch of a release, with the values of its secrets. Raises RecipeError, CompileError, MachineError."""
        loaded, recipe = self.space.load(ref, sets)
        site = with_gpu(self.space.site(loaded.found.directory), recipe, simulated=on == "sim")
        plan = launchable(Compiler(site).plan(recipe, changed=loaded.changed))
        if recipe.status == "deprecated":
            self.space.console.message(f"{recipe.ref} is deprecated: {' '.join(recipe.limits)}", "warning")
        if plan.image_id:
            self.rehearsal = replace(self.rehearsal, image_ids={plan.image: plan.image_id})
        secrets = read_secrets(plan, self.space.environment.variables)
        return replace(self._launch(plan, recipe, on), secrets=secrets, overrides=tuple(sets or ()), given=ref)

    def known(self, on: On) -> tuple[Launch, ...]:
        """Launches of all releases that compile here, without their secrets: to compare containers with."""
        found = []
        for ref in self.space.catalog.refs():
            loaded = self.space.loader.load_file(self.space.catalog.find(ref))
            compiler = Compiler(self.space.site(loaded.found.directory))
            if loaded.recipe is not None and (plan := compiler.try_plan(loaded.recipe)) is not None:
                found.append(self._launch(plan, loaded.recipe, on))
        return tuple(found)

    def _launch(self, plan: Plan, recipe: Recipe, on: On) -> Launch:
        expected = {name: float(phase.seconds) for name, phase in recipe.boot.phases.items()}
        receipts, tuning = receipts_of(recipe), tuning_of(recipe)
        return Launch(plan, expected=expected, address=self.site.address, on=on, receipts=receipts, tuning=tuning)
