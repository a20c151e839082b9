"""Doctor and preflight: the facts of the machine, of one release, and of existing containers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from gb300serve.adapters.docker.client import DockerEngine
from gb300serve.adapters.host import BackendEngine, usable_state
from gb300serve.app.actions import Invocation, render_suggestions, suggesting
from gb300serve.app.fit import Fitter
from gb300serve.app.hosts import Hosts, On
from gb300serve.app.launchable import PreparedLaunch, SecretUnavailableError, launchable, read_secrets, site_with_gpu
from gb300serve.app.state import StateDirectory
from gb300serve.app.workspace import Workspace
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.errors import BackendError, MachineError
from gb300serve.core.text import GIB
from gb300serve.core.values import Missing
from gb300serve.fit.hardware import STATION, GraceMemory, Hbm, gpu_with_total
from gb300serve.fit.result import FitResult
from gb300serve.host.collect import RemoteMachine, UnavailableDocker, host_facts, release_facts
from gb300serve.host.facts import HostDocker, HostFacts, Machine, SecretFact
from gb300serve.lifecycle.backend import Container, Image, told_by
from gb300serve.lifecycle.launch import Launch, host_ports
from gb300serve.lifecycle.reconcile import Observed, containers_on_port, is_live, reconcile
from gb300serve.lifecycle.steps import AwaitReady, Step, StopContainer, runs_already, starts_kept
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan
from gb300serve.preflight.run import MachineUnfitError, blocking, judge
from gb300serve.preflight.subject import (
    LaunchRefusal,
    OwnResources,
    PreflightSubject,
    Release,
    computing_gpus,
    host_requirements,
    known,
)
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import Recipe
from gb300serve.simulator.host import INFO, StationMachine

NOTHING_BEARABLE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PreflightResult:
    """The facts that preflight collected, and its findings."""

    subject: PreflightSubject
    found: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Doctor:
    """Inspects the machine that the containers run on, or the simulated Station. Changes nothing."""

    workspace: Workspace
    hosts: Hosts
    state: StateDirectory
    on: On

    def host(self) -> PreflightSubject:
        """The host alone."""
        return PreflightSubject(self._host)

    def examine(self, ref: str, sets: Sequence[str], *, replace: bool) -> PreflightSubject:
        """One release, checked as `up` would (`replace`: as `up --replace`). Raises RecipeError, CompileError."""
        loaded, recipe = self.workspace.load(ref, sets)
        site = site_with_gpu(self.workspace, self.hosts, loaded, recipe, self.on)
        invocation = Invocation(ref, self.on, self.workspace.options, tuple(sets))
        with suggesting(invocation):
            plan = launchable(Compiler(site).plan(recipe, changed=loaded.changed))
        launch = Launch(plan, address=self.hosts.address(self.on), on=self.on, overrides=tuple(sets))
        containers, refusal = self.containers(), None
        steps: tuple[Step, ...] = ()
        try:
            steps = reconcile(launch, self._observed(plan, containers), 0.0, replace=replace)
        except MachineError as error:
            render_suggestions(error, invocation)
            refusal = LaunchRefusal(error.message, error.hint)
        prepared = PreparedLaunch(launch, loaded, recipe, ref, tuple(sets), invocation, {})
        return self.subject(prepared, _own(launch, steps, containers), refusal)

    def subject(
        self, prepared: PreparedLaunch, own: OwnResources, refusal: LaunchRefusal | None = None
    ) -> PreflightSubject:
        """Everything that the checks need."""
        host, launch, recipe = self._host, prepared.launch, prepared.recipe
        plan = launch.plan
        facts = release_facts(
            host_requirements(plan, recipe, host_ports(plan)), self._machine(), self._engine(plan), self._secrets(plan)
        )
        memory = self._memory(launch, prepared.loaded, recipe, _grace(host, own))
        return PreflightSubject(host, Release(plan, facts, memory, own, refusal, prepared.invocation.command("fit")))

    def containers(self) -> tuple[Container, ...]:
        """All containers of this host; none if the engine does not respond, which PRE010 reports."""
        if self.on == "sim" and not self.hosts.simulated_directory.is_dir():
            return ()
        try:
            return self.hosts.at(self.on).backend.containers()
        except BackendError:
            return ()

    def _observed(self, plan: Plan, containers: tuple[Container, ...]) -> Observed:
        """The containers only: image, sources and sockets have checks of their own."""
        others = (container for host in self.hosts.neighbours(self.on) for container in host.containers())
        beside = tuple(container for container in others if container.state == "running")
        gpu = told_by(self._host.gpus, self._host.processes)
        return Observed(containers, image=Image(plan.image_id or "", (), ""), neighbours=beside, gpu=gpu)

    @cached_property
    def _host(self) -> HostFacts:
        state = usable_state(self.state.path, self.state.runs.directory, self.state.journal.path)
        return host_facts(self._machine(), self._engine(), state)

    def _machine(self) -> Machine:
        if self.on == "sim":
            return StationMachine(self.hosts.machine.listener)
        if self.hosts.is_local(self.on):
            return self.hosts.machine
        return RemoteMachine(f"the containers run on {self.hosts.docker_address}: run doctor there")

    def _engine(self, plan: Plan | None = None) -> HostDocker:
        """`plan`: the launch to simulate: a simulated image has the id that it pins."""
        if self.on == "sim":
            return BackendEngine(self.hosts.at("sim", plan).backend, lambda: INFO)
        try:
            engine = DockerEngine(self.hosts.endpoint)
        except BackendError as error:
            return UnavailableDocker(error.message)
        return BackendEngine(self.hosts.at("docker").backend, lambda: dict(engine.get("/info")))

    def _secrets(self, plan: Plan) -> tuple[SecretFact, ...]:
        """Read each secret on its own, and drop its value. A rehearsal reads none."""
        found = []
        for secret in plan.container.secrets if self.on == "docker" else ():
            alone = replace(plan, container=replace(plan.container, secrets=(secret,)))
            try:
                read_secrets(alone, self.workspace.environment.variables)
                found.append(SecretFact(secret.name))
            except SecretUnavailableError as error:
                found.append(SecretFact(secret.name, error.message, error.hint))
        return tuple(found)

    def _memory(self, launch: Launch, loaded: LoadedRecipe, recipe: Recipe, grace: GraceMemory) -> FitResult | None:
        """The result of `fit` with the memory that this host has."""
        gpu = _seen_gpu(self._host, launch.plan.container.gpus)
        return Fitter(self.workspace).result(loaded, recipe, launch.overrides, gpu, grace)


def check_launch(
    doctor: Doctor, prepared: PreparedLaunch, steps: Sequence[Step], bearable: frozenset[str] = NOTHING_BEARABLE
) -> PreflightResult:
    """The warnings before the steps of `up`, and checks that could not be made.

    Changes nothing. Raises MachineUnfitError (exit 6) with everything that blocks; codes in `bearable` only warn. A
    lane that runs already is left alone: nothing is launched, and only the host is inspected.
    """
    if runs_already(steps):
        return PreflightResult(doctor.host())
    invocation = prepared.invocation
    subject = doctor.subject(prepared, _own(prepared.launch, steps, doctor.containers()))
    judged = judge(subject)
    found = tuple(replace(finding, severity="warning") if finding.code in bearable else finding for finding in judged)
    if blocking(found):
        raise MachineUnfitError(invocation.ref, invocation.command("doctor"), found)
    return PreflightResult(subject, found)


def _seen_gpu(host: HostFacts, requested: str | None) -> Hbm | None:
    """The GPU of the launch as nvidia-smi reports it; None if it does not report what CUDA can use."""
    computing = computing_gpus(known(host.gpus), requested)
    total = computing[0].cuda_memory if len(computing) == 1 else None
    return gpu_with_total(total / GIB, computing[0].name, "from nvidia-smi") if total else None


def _grace(host: HostFacts, own: OwnResources) -> GraceMemory:
    """A lane that is stopped first frees an unknown amount: then assume the total memory."""
    if isinstance(host.memory, Missing):
        return STATION
    if own.containers:
        return GraceMemory(host.memory.total / GIB, "MemTotal: the running lane is stopped first")
    return GraceMemory(host.memory.available / GIB, "MemAvailable")


def _own(launch: Launch, steps: Sequence[Step], containers: Sequence[Container]) -> OwnResources:
    ids = {step.container for step in steps if isinstance(step, StopContainer | AwaitReady)}
    mine = tuple(container for container in containers if container.id in ids and is_live(container))
    ports = frozenset(port for port in host_ports(launch.plan) if any(containers_on_port(port, mine)))
    continues = starts_kept(steps) or runs_already(steps)
    return OwnResources(frozenset(container.id for container in mine), ports, continues)
