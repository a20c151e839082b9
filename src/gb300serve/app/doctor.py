"""Doctor and preflight put together: which machine is asked, for which release, beside which containers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from gb300serve.adapters.docker.client import DockerEngine
from gb300serve.adapters.host import BackendEngine, SystemMachine, usable_state
from gb300serve.app.fit import Fitter
from gb300serve.app.launchable import SecretUnavailableError, launchable, read_secrets
from gb300serve.app.services import On, Services
from gb300serve.app.workspace import state_directory
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.errors import BackendError, MachineError
from gb300serve.core.text import GIB
from gb300serve.fit.model import STATION, GraceMemory, host_verdict
from gb300serve.fit.result import FitResult
from gb300serve.host.collect import Elsewhere, Silent, host_facts, release_facts
from gb300serve.host.facts import HostFacts, SecretFact
from gb300serve.host.missing import Missing
from gb300serve.host.ports import HostDocker, Machine
from gb300serve.lifecycle.backend import Container, Image, told_by
from gb300serve.lifecycle.launch import Launch, host_ports
from gb300serve.lifecycle.observe import Observed
from gb300serve.lifecycle.reconcile import live, on_port, reconcile
from gb300serve.lifecycle.steps import AwaitReady, StartContainer, Step, StopContainer
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan
from gb300serve.preflight.run import MachineUnfitError, blocking, judge
from gb300serve.preflight.subject import LaunchRefusal, Own, PreflightSubject, Release, wanted
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import Recipe
from gb300serve.simulator.host import INFO, StationMachine

NOTHING_BEARABLE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Looked:
    """What preflight looked at, and what it found."""

    subject: PreflightSubject
    found: tuple[Diagnostic, ...] = ()


def for_launch(
    services: Services, launch: Launch, steps: Sequence[Step], bearable: frozenset[str] = NOTHING_BEARABLE
) -> Looked:
    """What is to be said before the steps of `up` are carried out: warnings, and checks that could not be made.

    Changes nothing. Raises MachineUnfitError (exit 6) with everything that blocks; codes in `bearable` only warn. A
    lane that runs already is left alone: nothing is launched, and the host alone is looked at.
    """
    doctor = Doctor(services, launch.on)
    if any(isinstance(step, AwaitReady) and step.running for step in steps):
        return Looked(doctor.host())
    loaded, recipe = services.space.load(launch.ref, launch.overrides)
    subject = doctor.subject(launch, loaded, recipe, _own(launch, steps, doctor.containers()), None)
    judged = judge(subject)
    found = tuple(replace(each, severity="warning") if each.code in bearable else each for each in judged)
    if blocking(found):
        raise MachineUnfitError(launch.ref, launch.command("doctor"), found)
    return Looked(subject, found)


@dataclass(frozen=True)
class Doctor:
    """Asks the machine that the containers run on, or the simulated Station. Nothing is changed."""

    services: Services
    on: On

    def host(self) -> PreflightSubject:
        """The host alone."""
        return PreflightSubject(self._host)

    def examine(self, ref: str, sets: Sequence[str], *, replace: bool) -> PreflightSubject:
        """One release, judged as `up` would (`replace`: as `up --replace`). Raises RecipeError, CompileError."""
        space = self.services.space
        loaded, recipe = space.load(ref, sets)
        site = self.services.site_with_gpu(loaded, recipe, self.on)
        plan = launchable(Compiler(site).plan(recipe, changed=loaded.changed))
        address = self.services.address(self.on)
        launch = Launch(plan, address=address, on=self.on, overrides=tuple(sets), given=ref, found_by=space.words)
        containers, refusal = self.containers(), None
        steps: tuple[Step, ...] = ()
        try:
            steps = reconcile(launch, self._observed(plan, containers), 0.0, replace=replace)
        except MachineError as error:
            refusal = LaunchRefusal(error.message, error.hint)
        return self.subject(launch, loaded, recipe, _own(launch, steps, containers), refusal)

    def subject(
        self, launch: Launch, loaded: LoadedRecipe, recipe: Recipe, own: Own, refusal: LaunchRefusal | None
    ) -> PreflightSubject:
        """Everything that the checks look at."""
        host, plan = self._host, launch.plan
        facts = release_facts(
            wanted(plan, recipe, host_ports(plan)), self._machine(), self._engine(), self._secrets(plan)
        )
        memory = self._memory(launch, loaded, recipe, _grace(host, own))
        return PreflightSubject(host, Release(plan, facts, memory, own, refusal, launch.command("fit")))

    def containers(self) -> tuple[Container, ...]:
        """All on this place; none where nobody answers, which is a finding of its own."""
        try:
            return self.services.backend(self.on).containers() if self._has_state or self.on == "docker" else ()
        except BackendError:
            return ()

    @property
    def _has_state(self) -> bool:
        """Whether the simulated Station has a place: looking must not make one."""
        return (state_directory(self.services.space) / "sim").is_dir()

    def _observed(self, plan: Plan, containers: tuple[Container, ...]) -> Observed:
        """The containers alone: image, sources and sockets have checks of their own, so they count as fine here."""
        others = self.services.neighbours(self.on) if self._has_state else ()
        beside = tuple(each for other in others for each in other.containers() if each.state == "running")
        gpu = told_by(self._host.gpus, self._host.processes)
        return Observed(containers, image=Image(plan.image_id or "", (), ""), neighbours=beside, gpu=gpu)

    @cached_property
    def _host(self) -> HostFacts:
        services = self.services
        state = usable_state(services.state, services.runs.directory, services.journal.path)
        return host_facts(self._machine(), self._engine(), state)

    def _machine(self) -> Machine:
        local = SystemMachine(self.services.space.environment.variables.get("PATH", ""))
        if self.on == "sim":
            return StationMachine(local.heard)
        if self.services.is_here(self.on):
            return local
        return Elsewhere(f"the containers run on {self.services.endpoint.host}: run doctor there")

    def _engine(self) -> HostDocker:
        if self.on == "sim":
            return BackendEngine(self.services.backend("sim"), lambda: INFO)
        try:
            spoken = DockerEngine(self.services.endpoint)
        except BackendError as error:
            return Silent(error.message)
        return BackendEngine(self.services.backend("docker"), lambda: dict(spoken.get("/info")))

    def _secrets(self, plan: Plan) -> tuple[SecretFact, ...]:
        """Each tried for itself; the values are let go at once."""
        found = []
        for secret in plan.container.secrets:
            alone = replace(plan, container=replace(plan.container, secrets=(secret,)))
            try:
                read_secrets(alone, self.services.space.environment.variables)
                found.append(SecretFact(secret.name))
            except SecretUnavailableError as error:
                found.append(SecretFact(secret.name, error.message, error.hint))
        return tuple(found)

    def _memory(self, launch: Launch, loaded: LoadedRecipe, recipe: Recipe, grace: GraceMemory) -> FitResult | None:
        """What `fit` says, with the memory that this host has."""
        found = Fitter(self.services.space).answer(loaded, recipe, launch.overrides)
        return found and replace(found, grace=grace, host_verdict=host_verdict(found.plan.host, grace))


def _grace(host: HostFacts, own: Own) -> GraceMemory:
    """What a lane that is stopped first holds comes back, and nothing says how much: then all of it may be there."""
    if isinstance(host.memory, Missing):
        return STATION
    if own.containers:
        return GraceMemory(host.memory.total / GIB, "MemTotal: what runs is stopped first")
    return GraceMemory(host.memory.available / GIB, "MemAvailable")


def _own(launch: Launch, steps: Sequence[Step], containers: Sequence[Container]) -> Own:
    """What the steps stop or use."""
    ids = {step.container for step in steps if isinstance(step, StopContainer | AwaitReady)}
    mine = tuple(each for each in containers if each.id in ids and live(each))
    ports = frozenset(port for port in host_ports(launch.plan) if any(on_port(port, mine)))
    kept = any(isinstance(step, StartContainer) and step.kept for step in steps)
    watched = any(isinstance(step, AwaitReady) and step.running for step in steps)
    return Own(frozenset(each.id for each in mine), ports, kept or watched)
