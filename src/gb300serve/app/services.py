"""The composition root: adapters built for the verbs that act, and only for those."""

import gc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

from gb300serve.adapters.docker.client import DockerEndpoint, DockerEngine
from gb300serve.adapters.docker.watch import WatchedDocker, unknown
from gb300serve.adapters.gpu import GpuUse, HostGpuMemory
from gb300serve.adapters.host import SystemMachine
from gb300serve.adapters.http import HttpClient
from gb300serve.adapters.listeners import SystemListeners
from gb300serve.adapters.process import SystemProcesses, SystemRemains
from gb300serve.adapters.system import SystemClock, SystemDisk, asker, uninterrupted
from gb300serve.app.launchable import launchable, read_secrets, receipts_of, tuning_of, with_gpu
from gb300serve.app.workspace import Workspace, state_directory
from gb300serve.core.errors import BackendError
from gb300serve.journal.history import RunHistory
from gb300serve.journal.journal import Asker, Journal, Story
from gb300serve.journal.lock import LaneLock
from gb300serve.journal.runs import RunRecord, Runs
from gb300serve.lifecycle.backend import ContainerBackend, GpuMemory, Listeners
from gb300serve.lifecycle.down import Remains
from gb300serve.lifecycle.events import Announcement
from gb300serve.lifecycle.launch import CHANGED, Launch, pinned_words
from gb300serve.lifecycle.rollback import PlanDiffersError
from gb300serve.lifecycle.tools import NoLock, Tools, unheard
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan, digest
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import Recipe
from gb300serve.recipe.pins import read_pin
from gb300serve.recipe.site import DIRECTORIES, FORMAT, Site, load_site
from gb300serve.recipe.write import to_yaml
from gb300serve.simulator.station import Rehearsal, SimulatedStation, WatchedStation

gc.enable()  # a verb that acts may run for days

On = Literal["docker", "sim"]
_Read = TypeVar("_Read")
SIM_SPEED = 200.0
LOOPBACK = "127.0.0.1"
RECIPE, SITE = "recipe.yaml", "site.yaml"


@dataclass
class Services:
    """Everything outside, for one command."""

    space: Workspace
    rehearsal: Rehearsal = field(default_factory=Rehearsal)
    _unread: set[str] = field(default_factory=set)

    @cached_property
    def site(self) -> Site:
        return self.space.site(None)

    @cached_property
    def clock(self) -> SystemClock:
        return SystemClock()

    @cached_property
    def state(self) -> Path:
        """The state directory; whoever writes there first makes it, readable by the user alone."""
        return state_directory(self.space)

    @cached_property
    def runs(self) -> Runs:
        return Runs(self.state, self.disk)

    @cached_property
    def journal(self) -> Journal:
        return Journal(self.state, self.disk, self.clock)

    @cached_property
    def disk(self) -> SystemDisk:
        return SystemDisk()

    @cached_property
    def asker(self) -> Asker:
        return asker(self.space.environment.variables)

    def lock(self, on: On, command: str) -> LaneLock:
        """For one command that changes what serves there."""
        return LaneLock(self.state / f"{on}.lock", self.disk, self.clock, command, self.asker)

    def history(self) -> RunHistory:
        """What the journal and the runs say; what cannot be read is said, and is as if nothing were there."""
        story = self._read(self.journal.path, self.journal.read, Story())
        return RunHistory(story.entries, self._read(self.runs.directory, self.runs.all, ()))

    def damaged_runs(self) -> tuple[str, ...]:
        """Runs whose record cannot be read."""
        return self._read(self.runs.directory, self.runs.damaged, ())

    def _read(self, path: Path, read: Callable[[], _Read], nothing: _Read) -> _Read:
        try:
            return read()
        except OSError as error:
            said = f"{path} cannot be read: {error.strerror or error}"
            if said not in self._unread:  # a launch asks more than once
                self._unread.add(said)
                self.space.console.message(said, "warning")
            return nothing

    @cached_property
    def endpoint(self) -> DockerEndpoint:
        """The Docker Engine that the site names, else the one that Docker's own client would use."""
        environment, chosen = self.space.environment, self.site.docker
        if chosen.host or chosen.context:
            return DockerEndpoint.choose(chosen.host, chosen.context)
        return DockerEndpoint.choose(environment.docker_host, environment.docker_context)

    @cached_property
    def docker(self) -> ContainerBackend:
        """The GPU can be looked at where the containers run on this machine."""
        use = GpuUse(self.clock) if self.is_here("docker") else unknown
        return WatchedDocker(DockerEngine(self.endpoint), self.clock, use)

    def is_here(self, on: On) -> bool:
        """Do the containers run on this machine, so that its files, GPUs and sockets are theirs?"""
        reached = None if on == "sim" else self._reached
        return reached is None or reached.is_here

    def address(self, on: On) -> str:
        """Where clients reach the lanes: the site's `address`, else the host that the Docker Engine is on."""
        if on == "sim":
            return LOOPBACK
        return self.site.address or (self._reached and self._reached.hostname) or LOOPBACK

    @property
    def _reached(self) -> DockerEndpoint | None:
        """None for a docker context that cannot be read: whoever asks the Engine hears of it."""
        try:
            return self.endpoint
        except BackendError:
            return None

    @property
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
        return (self.simulated,) if on == "docker" and self.simulated_exists and self.is_here(on) else ()

    def backend(self, on: On) -> ContainerBackend:
        return self.docker if on == "docker" else self.simulated

    def tools(self, on: On, announce: Callable[[Announcement], None] = unheard, lock: LaneLock | None = None) -> Tools:
        return Tools(
            self.backend(on),
            self.http,
            self.clock,
            announce,
            lock=lock or NoLock(),
            uninterrupted=uninterrupted,
            listeners=self.listeners(on),
            gpu=self.gpu_memory(on),
        )

    def gpu_memory(self, on: On) -> GpuMemory | None:
        """Can be looked at where the containers run on this machine."""
        local = SystemMachine(self.space.environment.variables.get("PATH", ""))
        return HostGpuMemory(local) if on == "docker" and self.is_here(on) else None

    def remains(self, on: On) -> Remains | None:
        """What an engine leaves behind can be seen where the containers run on this machine."""
        return SystemRemains() if on == "docker" and self.is_here(on) else None

    def listeners(self, on: On) -> Listeners | None:
        """Sockets can be looked at where the containers run on this machine."""
        return SystemListeners() if self.is_here(on) else None

    def site_with_gpu(self, loaded: LoadedRecipe, recipe: Recipe, on: On) -> Site:
        """The site that applies, with the GPU that it lacks and the machine has; of a remote one nothing is known."""
        site = self.space.site(loaded.file.directory)
        return with_gpu(site, recipe, simulated=on == "sim") if self.is_here(on) else site

    def launch(self, ref: str, sets: list[str] | None, on: On) -> Launch:
        """The launch of a release, with the values of its secrets. Raises RecipeError, CompileError, MachineError."""
        loaded, recipe = self.space.shareable(ref, sets)
        site = self.site_with_gpu(loaded, recipe, on)
        plan = launchable(Compiler(site).plan(recipe, changed=loaded.changed))
        if recipe.status == "deprecated":
            self.space.console.message(f"{recipe.ref} is deprecated: {' '.join(recipe.limits)}", "warning")
        pinned = None if sets else pinned_words(read_pin(loaded.file.path), plan)
        launch = self._secret(plan, loaded, recipe, site, on)
        return replace(launch, overrides=tuple(sets or ()), given=ref, pinned=pinned)

    def launch_again(self, record: RunRecord, on: On) -> Launch:
        """The launch of a run, from what it was compiled from; PlanDiffersError where that gives another plan."""
        directory = self.runs.directory / record.run
        loaded, recipe = self.space.load(str(directory / RECIPE))
        site = load_site(directory / SITE, None)
        plan = Compiler(site).plan(recipe, changed=record.release.endswith(CHANGED))
        if digest(plan) != record.plan:
            raise PlanDiffersError(record, "its recipe and site compile to another plan now", self.space.words)
        launch = self._secret(plan, loaded, recipe, site, on)
        return replace(launch, overrides=record.overrides, given=record.ref.removesuffix(CHANGED))

    def _secret(self, plan: Plan, loaded: LoadedRecipe, recipe: Recipe, site: Site, on: On) -> Launch:
        """With the values of its secrets, and with what it was compiled from."""
        ids = {plan.image: plan.image_id} if plan.image_id else {}
        self.rehearsal = replace(self.rehearsal, image_ids=ids, afflicts=plan)
        secrets = read_secrets(plan, self.space.environment.variables)
        self.space.console.hide(secrets.values())
        known = site.model_dump(include={*DIRECTORIES, "gpus", "lanes"}, exclude_none=True)
        papers = {RECIPE: to_yaml(loaded.root), SITE: to_yaml({"format": FORMAT, **known})}
        return replace(self._launch(plan, recipe, on), secrets=secrets, papers=papers)

    def known(self, on: On) -> tuple[Launch, ...]:
        """Launches of all releases that compile here, without their secrets: to compare containers with."""
        found = []
        for ref in self.space.catalog.refs():
            loaded = self.space.loader.load_file(self.space.catalog.find(ref))
            compiler = Compiler(self.space.site(loaded.file.directory))
            if loaded.recipe is not None and (plan := compiler.try_plan(loaded.recipe)) is not None:
                pinned = pinned_words(read_pin(loaded.file.path), plan)
                found.append(replace(self._launch(plan, loaded.recipe, on), pinned=pinned))
        return tuple(found)

    def _launch(self, plan: Plan, recipe: Recipe, on: On) -> Launch:
        expected = {name: float(phase.seconds) for name, phase in recipe.boot.phases.items()}
        receipts, tuning = receipts_of(recipe), tuning_of(recipe)
        launch = Launch(plan, expected=expected, address=self.address(on), on=on, receipts=receipts, tuning=tuning)
        return replace(launch, found_by=self.space.words)
