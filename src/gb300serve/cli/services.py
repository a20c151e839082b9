"""The composition root: adapters built for the verbs that act, and only for those."""

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from gb300serve.adapters.clock import SystemClock
from gb300serve.adapters.docker_sdk import connect
from gb300serve.adapters.http import HttpClient
from gb300serve.adapters.listeners import SystemListeners
from gb300serve.adapters.process import SystemProcesses
from gb300serve.cli.workspace import Workspace
from gb300serve.core.errors import MachineError
from gb300serve.lifecycle.events import Announcement
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.ports import ContainerBackend, Listeners
from gb300serve.lifecycle.tools import Tools, unheard
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan, Secret
from gb300serve.recipe.model import Recipe
from gb300serve.simulator.station import Rehearsal, SimulatedStation
from gb300serve.site.model import Site

gc.enable()  # a verb that acts may run for days

On = Literal["docker", "sim"]
SIM_SPEED = 200.0


class SecretUnavailableError(MachineError):
    """A secret's value is not where the recipe says; its value is never part of a message."""

    def __init__(self, secret: Secret, reason: str) -> None:
        hint = f"export {secret.env}=…" if secret.env else "put the value there, readable by you alone"
        super().__init__(f"secret {secret.name}: {reason}", hint=hint)


@dataclass
class Services:
    """Everything outside, for one command."""

    space: Workspace
    rehearsal: Rehearsal = Rehearsal()

    @cached_property
    def site(self) -> Site:
        return self.space.site(None)

    @cached_property
    def clock(self) -> SystemClock:
        return SystemClock()

    @cached_property
    def state(self) -> Path:
        """The state directory, made readable by the user alone."""
        path = Path(self.site.state).expanduser() if self.site.state else self.space.environment.state_home / "gb300serve"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    @cached_property
    def docker(self) -> ContainerBackend:
        """The Engine that the site names, else the one that Docker's own client would use."""
        environment, chosen = self.space.environment, self.site.docker
        if chosen.host or chosen.context:
            return connect(chosen.host, chosen.context, self.clock)
        return connect(environment.docker_host, environment.docker_context, self.clock)

    @cached_property
    def simulated(self) -> SimulatedStation:
        return SimulatedStation(
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
        host = self.site.docker.host or self.space.environment.docker_host
        return SystemListeners() if on == "sim" or host is None or host.startswith("unix://") else None

    def launch(self, ref: str, sets: list[str] | None, on: On) -> Launch:
        """The launch of a release, with the values of its secrets. Raises RecipeError, CompileError, MachineError."""
        loaded, recipe = self.space.load(ref, sets)
        plan = Compiler(self.space.site(loaded.found.directory)).plan(recipe, changed=loaded.changed)
        secrets = read_secrets(plan, self.space.environment.variables)
        return self._launch(plan, recipe, on, secrets, tuple(sets or ()), ref)

    def known(self, on: On) -> tuple[Launch, ...]:
        """Launches of all releases that compile here, without their secrets: to compare containers with."""
        found = []
        for ref in self.space.catalog.refs():
            loaded = self.space.loader.load_file(self.space.catalog.find(ref))
            compiler = Compiler(self.space.site(loaded.found.directory))
            if loaded.recipe is not None and (plan := compiler.try_plan(loaded.recipe)) is not None:
                found.append(self._launch(plan, loaded.recipe, on, {}, (), ""))
        return tuple(found)

    def _launch(  # noqa: PLR0913 - the fields of a launch
        self, plan: Plan, recipe: Recipe, on: On, secrets: Mapping[str, str], sets: tuple[str, ...], given: str
    ) -> Launch:
        expected = {name: float(phase.seconds) for name, phase in recipe.boot.phases.items()}
        address = self.site.address
        return Launch(plan, secrets=secrets, expected=expected, address=address, on=on, overrides=sets, given=given)


def read_secrets(plan: Plan, variables: Mapping[str, str]) -> dict[str, str]:
    """Values by name, read on the client; raises SecretUnavailableError."""
    return {secret.name: _read_secret(secret, variables) for secret in plan.container.secrets}


def _read_secret(secret: Secret, variables: Mapping[str, str]) -> str:
    if secret.env:
        if not variables.get(secret.env):
            raise SecretUnavailableError(secret, f"the variable {secret.env} is not set")
        return variables[secret.env]
    path = Path(secret.file or "").expanduser()
    try:
        value = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SecretUnavailableError(secret, f"{path}: {reason}") from error
    if not value:
        raise SecretUnavailableError(secret, f"{path} is empty")
    return value
