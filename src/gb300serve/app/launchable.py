"""Launches from a REF or from an earlier run, compiled and with the values of their secrets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gb300serve.adapters.process import output
from gb300serve.app.actions import Invocation
from gb300serve.app.hosts import Hosts, On
from gb300serve.app.workspace import Workspace
from gb300serve.autotune.sets import ExpectedSet
from gb300serve.boot.receipts import ExpectedLine
from gb300serve.compare.costs import RecordedIdentity, recorded_identity, tuning_range
from gb300serve.core.errors import Action, CompileError, MachineError
from gb300serve.fit.checkpoint import Checkpoint, checkpoint_at_path
from gb300serve.fit.request import MemoryRequest, request_from_options
from gb300serve.host.nvidia import gpus_named, parse_gpu_list
from gb300serve.journal.runs import RunRecord
from gb300serve.lifecycle.launch import CHANGED, Launch, pinned_arguments
from gb300serve.lifecycle.rollback import PlanDiffersError
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan, Secret, digest
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import RETIRED, Recipe
from gb300serve.recipe.site import DIRECTORIES, FORMAT, Site, load_site
from gb300serve.recipe.write import read_pin, to_yaml
from gb300serve.simulator.host import GB300_UUID

NVIDIA_SMI_PATIENCE = 30.0
# Files of a run, from which the launch can be repeated.
RECIPE, SITE = "recipe.yaml", "site.yaml"


class NoContainerNameError(CompileError):
    """The container has no name, which identifies the lane."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(
            f"{plan.recipe} does not set container.name, which up requires", hint=f"add `name: {plan.lane}`"
        )


class UnreachablePortError(CompileError):
    """The engine's port is neither on the host's network nor published."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(
            f"the engine of {plan.recipe} has no port on the host, so its health cannot be checked",
            hint="add `network: host`, or the engine's port to container.ports as HOST:CONTAINER",
        )


class SeveralMachinesError(CompileError):
    """`up` launches on one Station only."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(
            f"{plan.recipe} runs on {plan.nodes} Stations at once, but up starts one container on one Station",
            suggest=(
                Action("compile", "print the command of each Station"),
                Action("compile", "or a LeaderWorkerSet", ("--to", "kubernetes")),
            ),
        )


class SecretUnavailableError(MachineError):
    """The value of a secret cannot be read from its source. The value is never part of a message."""

    def __init__(self, secret: Secret, reason: str) -> None:
        hint = f"export {secret.env}=…" if secret.env else "write the value to that file, readable by your user only"
        super().__init__(f"secret {secret.name}: {reason}", hint=hint)


@dataclass(frozen=True, slots=True)
class PreparedLaunch:
    """A launch with the recipe that it was compiled from, and how the user addressed it."""

    launch: Launch
    loaded: LoadedRecipe
    recipe: Recipe
    source: str
    """The REF that loads the recipe, with `sets` applied; for a run, its own file."""
    sets: tuple[str, ...]
    invocation: Invocation
    artifacts: Mapping[str, str]
    """Texts by file name from which the launch can be repeated; kept with its run."""


def prepare(workspace: Workspace, hosts: Hosts, ref: str, sets: tuple[str, ...], on: On) -> PreparedLaunch:
    """The launch of a release. Raises RecipeError, CompileError, MachineError."""
    loaded, recipe = workspace.shareable(ref, sets)
    site = site_with_gpu(workspace, hosts, loaded, recipe, on)
    plan = launchable(Compiler(site).plan(recipe, changed=loaded.changed))
    if recipe.status in RETIRED:
        workspace.console.message(f"{recipe.ref} is {recipe.status}: {' '.join(recipe.limits)}", "warning")
    if on == "sim" and (secrets := plan.container.secrets):
        named = ", ".join(secret.name for secret in secrets)
        workspace.console.message(f"this rehearsal uses stand-ins for its secrets: {named}", "dim")
    pinned = None if sets else pinned_arguments(read_pin(loaded.file.path), plan)
    launch = replace(_with_secrets(workspace, hosts, plan, recipe, on), overrides=sets, pinned=pinned)
    invocation = Invocation(ref, on, workspace.options, sets)
    return PreparedLaunch(launch, loaded, recipe, ref, sets, invocation, _artifacts(loaded, site))


def prepare_run(workspace: Workspace, hosts: Hosts, runs: Path, record: RunRecord, on: On) -> PreparedLaunch:
    """The launch of an earlier run, from its own files. Raises PlanDiffersError if they compile to another plan."""
    own = str(runs / record.run / RECIPE)
    loaded, recipe = workspace.load(own)
    site = load_site(runs / record.run / SITE, None)
    plan = Compiler(site).plan(recipe, changed=record.release.endswith(CHANGED))
    if digest(plan) != record.plan:
        raise PlanDiffersError(record, "its recipe and site now compile to another plan")
    launch = replace(_with_secrets(workspace, hosts, plan, recipe, on), overrides=record.overrides)
    invocation = Invocation(record.ref.removesuffix(CHANGED), on, workspace.options, record.overrides)
    return PreparedLaunch(launch, loaded, recipe, own, (), invocation, _artifacts(loaded, site))


def known_launches(workspace: Workspace, hosts: Hosts, on: On) -> tuple[Launch, ...]:
    """Launches, without secrets, of all releases that compile here; containers are compared with them."""
    launches = []
    for ref in workspace.catalog.refs():
        loaded = workspace.loader.load_file(workspace.catalog.find(ref))
        compiler = Compiler(workspace.site(loaded.file.directory))
        if loaded.recipe is not None and (plan := compiler.try_plan(loaded.recipe)) is not None:
            pinned = pinned_arguments(read_pin(loaded.file.path), plan)
            launches.append(replace(_launch(plan, loaded.recipe, hosts.address(on), on), pinned=pinned))
    return tuple(launches)


def site_with_gpu(workspace: Workspace, hosts: Hosts, loaded: LoadedRecipe, recipe: Recipe, on: On) -> Site:
    """The site that applies, with the UUID of a local GPU that it does not define."""
    site = workspace.site(loaded.file.directory)
    return with_gpu(site, recipe, simulated=on == "sim") if hosts.is_local(on) else site


def _with_secrets(workspace: Workspace, hosts: Hosts, plan: Plan, recipe: Recipe, on: On) -> Launch:
    if on == "sim":
        return replace(_launch(plan, recipe, hosts.address(on), on), secrets=stand_ins(plan))
    secrets = read_secrets(plan, workspace.environment.variables)
    workspace.console.hide(secrets.values())
    return replace(_launch(plan, recipe, hosts.address(on), on), secrets=secrets)


def _launch(plan: Plan, recipe: Recipe, address: str, on: On) -> Launch:
    expected = {name: float(phase.seconds) for name, phase in recipe.boot.phases.items()}
    receipts, tuning = receipts_of(recipe), tuning_of(recipe)
    return Launch(plan, expected=expected, address=address, on=on, receipts=receipts, tuning=tuning)


def _artifacts(loaded: LoadedRecipe, site: Site) -> dict[str, str]:
    known = site.model_dump(include={*DIRECTORIES, "gpus", "lanes"}, exclude_none=True)
    return {RECIPE: to_yaml(loaded.root), SITE: to_yaml({"format": FORMAT, **known})}


def launchable(plan: Plan) -> Plan:
    """Raises CompileError for a plan that can be compiled but not launched."""
    if plan.nodes > 1:
        raise SeveralMachinesError(plan)
    if not plan.container.name:
        raise NoContainerNameError(plan)
    if plan.port is None:
        raise UnreachablePortError(plan)
    return plan


def with_gpu(site: Site, recipe: Recipe, *, simulated: bool) -> Site:
    """The site with the missing UUID of a GPU, if the machine has exactly one GPU of that name."""
    gpus = recipe.container.gpus
    if gpus is None or gpus.by != "name" or str(gpus.values[0]) in site.gpus:
        return site
    name = str(gpus.values[0])
    # The simulated Station has one GPU of every name.
    listed = "" if simulated else output(("nvidia-smi", "-L"), NVIDIA_SMI_PATIENCE) or ""
    uuids = [GB300_UUID] if simulated else [gpu.uuid for gpu in gpus_named(parse_gpu_list(listed), name)]
    return site.model_copy(update={"gpus": {**site.gpus, name: uuids[0]}}) if len(uuids) == 1 else site


def stand_ins(plan: Plan) -> dict[str, str]:
    """For a rehearsal, whose containers are files on the disk: no value is read, so none can be kept there."""
    return {secret.name: f"simulated-{secret.name}" for secret in plan.container.secrets}


def read_secrets(plan: Plan, variables: Mapping[str, str]) -> dict[str, str]:
    """Values by name, read on this machine. Raises SecretUnavailableError."""
    return {secret.name: _read_secret(secret, variables) for secret in plan.container.secrets}


def _read_secret(secret: Secret, variables: Mapping[str, str]) -> str:
    if secret.env:
        if not variables.get(secret.env):
            raise SecretUnavailableError(secret, f"the variable {secret.env} is not set")
        return variables[secret.env]
    path = Path(secret.file or "").expanduser()
    try:
        value = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SecretUnavailableError(secret, f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SecretUnavailableError(secret, f"{path} is not UTF-8") from error
    if not value:
        raise SecretUnavailableError(secret, f"{path} is empty")
    return value


def receipts_of(recipe: Recipe) -> tuple[ExpectedLine, ...]:
    """The receipts of `boot.receipts`."""
    return tuple(
        ExpectedLine(
            receipt.line,
            None if receipt.value is None else float(receipt.value),
            float(receipt.tolerance or 0.0),
            receipt.missing,
            receipt.forbidden,
            receipt.basis,
        )
        for receipt in recipe.boot.receipts
    )


def tuning_of(recipe: Recipe) -> ExpectedSet:
    """The tuning cache in the recipe, else that of a recorded boot of the same settings; and the cost of a miss."""
    known = checkpoint_of(recipe)
    seconds = tuning_range(known, _request(recipe, known)) if known else None
    if (own := recipe.boot.tuning_cache) is not None:
        return ExpectedSet(own.identity, own.configs, own.basis, seconds, own.missing == "degrade", own.sha256)
    found = recorded_of(recipe, known)
    if found is None:
        return ExpectedSet(tuning_seconds=seconds)
    return ExpectedSet(found.identity, None, f"recorded for {found.boot}", seconds)


def checkpoint_of(recipe: Recipe) -> Checkpoint | None:
    """The checkpoint of the recipe's model in the package."""
    model = recipe.model
    return checkpoint_at_path(model.repo or model.path or "") if model else None


def recorded_of(recipe: Recipe, known: Checkpoint | None) -> RecordedIdentity | None:
    """The identity from a recorded boot of these settings."""
    if known is None:
        return None
    return recorded_identity(known, _request(recipe, known), recipe.engine.options)


def _request(recipe: Recipe, known: Checkpoint) -> MemoryRequest:
    options: Mapping[str, Any] = recipe.engine.options
    return request_from_options(options, recipe.engine.version, known.variant(recipe.container.env))
