"""Plan → a file for `docker compose` (Compose Specification)."""

from collections.abc import Iterator
from typing import Any

from gb300serve.plan.model import ContainerPlan, HealthCheck, Mount, Plan, Secret
from gb300serve.render import target
from gb300serve.render.docker_run import client_path

# Network modes; any other name is a network that the user created.
_MODES = ("host", "bridge", "none", "default")
_START = "Start it with `docker compose -f THIS-FILE up -d`. Needs Docker Compose 2: 1.29 rejects create_host_path."


def compose(plan: Plan, service: target.TargetService) -> target.Rendered:
    """One service, named after the lane. Every `$` is doubled: compose substitutes variables."""
    gaps = tuple(_gaps(plan))
    document = {"services": {plan.lane: _service(plan, service)}}
    network = plan.container.network
    if _is_user_network(network):
        document["networks"] = {str(network): {"external": True}}
    if volumes := target.volumes(plan.container):
        # With `name`, Compose does not add the name of the project.
        document["volumes"] = {mount.source: {"name": mount.source} for mount in volumes}
    header = target.file_header(plan, "a compose file", (_START,), gaps)
    return target.Rendered(header + target.yaml_text(document), gaps)


def _service(plan: Plan, service: target.TargetService) -> dict[str, Any]:
    c = plan.container
    section = {
        "image": _literal(plan.image),
        "container_name": c.name,
        "deploy": _gpus(c.gpus),
        "ipc": _literal(c.ipc),
        **_network(c.network),
        "shm_size": _literal(c.shm_size),
        "ulimits": {name: _limit(limit) for name, limit in c.ulimits.items()},
        "cap_add": _each(c.cap_add),
        "security_opt": _each(c.security_opt),
        "privileged": c.privileged,
        "init": c.init,
        "stop_grace_period": None if c.stop_timeout is None else f"{c.stop_timeout}s",
        "user": _literal(c.user),
        "group_add": _each(c.group_add),
        "working_dir": _literal(c.workdir),
        "pid": _literal(c.pid),
        "mem_limit": _literal(c.memory),
        "cpuset": _literal(c.cpuset_cpus),
        "memswap_limit": _literal(c.memory_swap),
        "tmpfs": _each(c.tmpfs),
        "extra_hosts": _each(c.add_host),
        "logging": _logging(c),
        "devices": _each(c.devices),
        "labels": {key: _literal(value) for key, value in c.labels.items()},
        "ports": _each(c.ports),
        "volumes": [_volume(mount) for mount in c.mounts],
        "environment": {
            **{name: _literal(value) for name, value in c.env.items()},
            **{secret.name: _reference(secret) for secret in c.secrets},
        },
        "entrypoint": [_literal(c.entrypoint)] if c.entrypoint else None,
        "restart": c.restart if c.restart != "no" else None,
        "healthcheck": _healthcheck(c.healthcheck, service),
        "command": _command(plan),
    }
    return {key: value for key, value in section.items() if value}


def _literal(text: str | None) -> str:
    """Empty if it is not set: keys without a value are left out."""
    return target.double_dollars(text or "")


def _each(values: tuple[str, ...]) -> list[str]:
    return list(map(_literal, values))


def _gpus(selection: str | None) -> dict[str, Any] | None:
    """The long form: 1.29 does not support `gpus:`."""
    if selection is None:
        return None
    device: dict[str, Any] = {"count": "all"}
    if selection.startswith("device="):
        device = {"device_ids": selection.removeprefix("device=").split(",")}
    elif selection != "all":
        device = {"count": int(selection)}
    return {"resources": {"reservations": {"devices": [device | {"capabilities": ["gpu"]}]}}}


def _is_user_network(network: str | None) -> bool:
    return network is not None and network not in _MODES and not network.startswith("container:")


def _network(network: str | None) -> dict[str, Any]:
    """Docker's default is `bridge`; compose would create a network for the project."""
    return {"networks": [network]} if _is_user_network(network) else {"network_mode": network or "bridge"}


def _limit(limit: int | tuple[int, int]) -> int | dict[str, int]:
    return limit if isinstance(limit, int) else {"soft": limit[0], "hard": limit[1]}


def _logging(c: ContainerPlan) -> dict[str, Any]:
    options = {key: _literal(value) for key, value in c.log_options.items()}
    return {key: value for key, value in (("driver", c.log_driver), ("options", options)) if value}


def _volume(mount: Mount) -> dict[str, Any]:
    """Compose rejects a missing source; by default it would create a directory."""
    kind = "volume" if mount.is_volume else "bind"
    volume: dict[str, Any] = {"type": kind, "source": _literal(mount.source), "target": _literal(mount.target)}
    volume |= {"read_only": True} if mount.read_only else {}
    return volume if mount.is_volume else volume | {"bind": {"create_host_path": False}}


def _reference(secret: Secret) -> str:
    return f"${{{secret.env or secret.name}:?set it to the value of the secret}}"


def _command(plan: Plan) -> list[str]:
    references = {secret.name: _reference(secret) for secret in plan.container.secrets}
    write = references.__getitem__
    return [target.substitute_secrets(argument, write, _literal, references) for argument in plan.command]


def _healthcheck(check: HealthCheck | None, service: target.TargetService) -> dict[str, Any]:
    """The check of the recipe, else one that waits for the boot."""
    if check is None:
        times = {"interval": "30s", "timeout": "10s", "retries": 3, "start_period": f"{service.patience}s"}
        return {"test": ["CMD", "python3", "-c", service.health_program], **times}
    if check.disable:
        return {"disable": True}
    values = {
        "test": ["CMD-SHELL", _literal(check.test)] if check.test else None,
        "interval": check.interval,
        "timeout": check.timeout,
        "start_period": check.start_period,
        "start_interval": check.start_interval,
        "retries": check.retries,
    }
    return {key: value for key, value in values.items() if value is not None}


def _gaps(plan: Plan) -> Iterator[target.Gap]:
    c = plan.container
    yield from target.common_gaps(plan)
    yield from target.single_machine_gaps(plan, "a compose file")
    if c.restart != "no":
        hint = "look for the first error in the log"
        yield target.different("restart", target.RESTART_MESSAGE.format(c.restart), hint)
    if _is_user_network(c.network):
        hint = f"docker network create {c.network}"
        yield target.different("network", f"the network {c.network} must exist before the start", hint)
    if target.bind_mounts(c):
        yield target.different("mounts", "compose rejects a missing source; `docker run -v` creates an empty directory")
    for secret in c.secrets:
        if secret.file:
            hint = f'export {secret.name}="$(cat {client_path(secret.file)})"'
            message = f"compose reads {secret.name} from its environment"
            yield target.Gap(target.TO_DO, ("container", "secrets", secret.name), message, hint)
