"""What a plan needs before it can be launched: a name, a port that can be reached, a GPU by UUID, values of secrets."""

from collections.abc import Mapping
from pathlib import Path

from gb300serve.adapters.process import output
from gb300serve.core.errors import CompileError, MachineError
from gb300serve.host.gpus import Gpu, listed, named
from gb300serve.plan.model import Plan, Secret
from gb300serve.recipe.model import Recipe
from gb300serve.simulator.station_host import GB300_UUID
from gb300serve.site.model import Site

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
    uuids = [GB300_UUID] if simulated else [gpu.uuid for gpu in named(_machine_gpus(), name)]
    return site.model_copy(update={"gpus": {**site.gpus, name: uuids[0]}}) if len(uuids) == 1 else site


def _machine_gpus() -> tuple[Gpu, ...]:
    return listed(output(("nvidia-smi", "-L"), NVIDIA_SMI_PATIENCE) or "")


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
