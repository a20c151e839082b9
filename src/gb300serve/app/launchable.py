"""What a plan needs before it can be launched: a name, a port that can be reached, a GPU by UUID, values of secrets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gb300serve.adapters.process import output
from gb300serve.autotune.sets import ExpectedSet
from gb300serve.boot.receipts import ExpectedLine
from gb300serve.compare.costs import RecordedIdentity, recorded_identity
from gb300serve.core.errors import CompileError, MachineError
from gb300serve.fit.checkpoint import Checkpoint, checkpoint_at_path
from gb300serve.fit.request import request_from_options
from gb300serve.host.nvidia import Gpu, gpus_named, parse_gpu_list
from gb300serve.plan.model import Plan, Secret
from gb300serve.recipe.model import Recipe
from gb300serve.recipe.site import Site
from gb300serve.simulator.host import GB300_UUID

NVIDIA_SMI_PATIENCE = 30.0


class NoContainerNameError(CompileError):
    """A lane is found again by its container's name."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(f"{plan.recipe} has no container.name to launch it under", hint=f"add `name: {plan.lane}`")


class UnreachablePortError(CompileError):
    """The engine's port is neither on the host's network nor published."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(
            f"no port of the host leads to the engine of {plan.recipe}, so nobody could ask it whether it serves",
            hint="add `network: host`, or the engine's port to container.ports as HOST:CONTAINER",
        )


class SeveralMachinesError(CompileError):
    """One command of ours launches on one Station."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(
            f"{plan.recipe} runs on {plan.nodes} Stations at once, and a launch here is one container on one of them",
            hint="`gb300serve compile` of the same REF prints the command for each Station; "
            "--to kubernetes makes a LeaderWorkerSet",
        )


class SecretUnavailableError(MachineError):
    """A secret's value is not where the recipe says; its value is never part of a message."""

    def __init__(self, secret: Secret, reason: str) -> None:
        hint = f"export {secret.env}=…" if secret.env else "put the value there, readable by you alone"
        super().__init__(f"secret {secret.name}: {reason}", hint=hint)


def launchable(plan: Plan) -> Plan:
    """The plan itself; raises CompileError where it can be compiled but not launched."""
    if plan.nodes > 1:
        raise SeveralMachinesError(plan)
    if not plan.container.name:
        raise NoContainerNameError(plan)
    if plan.port is None:
        raise UnreachablePortError(plan)
    return plan


def with_gpu(site: Site, recipe: Recipe, *, simulated: bool) -> Site:
    """The site, with the UUID of a GPU that it lacks and the machine has exactly one of."""
    gpus = recipe.container.gpus
    if gpus is None or gpus.by != "name" or str(gpus.values[0]) in site.gpus:
        return site
    name = str(gpus.values[0])
    # The simulated Station has one GPU of every name that a recipe asks for.
    uuids = [GB300_UUID] if simulated else [gpu.uuid for gpu in gpus_named(_machine_gpus(), name)]
    return site.model_copy(update={"gpus": {**site.gpus, name: uuids[0]}}) if len(uuids) == 1 else site


def _machine_gpus() -> tuple[Gpu, ...]:
    return parse_gpu_list(output(("nvidia-smi", "-L"), NVIDIA_SMI_PATIENCE) or "")


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
            one.line,
            None if one.value is None else float(one.value),
            float(one.tolerance or 0.0),
            one.missing,
            one.forbidden,
            one.basis,
        )
        for one in recipe.boot.receipts
    )


def tuning_of(recipe: Recipe) -> ExpectedSet:
    """The recipe's own record of its tuning cache, else a recorded boot of the same settings; the price of a miss."""
    known = checkpoint_of(recipe)
    seconds = known.autotune.tuning_seconds if known and known.autotune.tuning_seconds else None
    said = recipe.boot.tuning_cache
    if said is not None:
        return ExpectedSet(said.identity, said.configs, said.basis, seconds, said.missing == "degrade")
    found = recorded_of(recipe, known)
    if found is None:
        return ExpectedSet(tuning_seconds=seconds)
    return ExpectedSet(found.identity, None, f"recorded for {found.boot}", seconds)


def checkpoint_of(recipe: Recipe) -> Checkpoint | None:
    """What the package knows of the recipe's model."""
    model = recipe.model
    return checkpoint_at_path(model.repo or model.path or "") if model else None


def recorded_of(recipe: Recipe, known: Checkpoint | None) -> RecordedIdentity | None:
    """The identity that a recorded boot of these settings showed."""
    if known is None:
        return None
    options: Mapping[str, Any] = recipe.engine.options
    demand = request_from_options(options, recipe.engine.version, known.variant(recipe.container.env))
    return recorded_identity(known, demand, options)
