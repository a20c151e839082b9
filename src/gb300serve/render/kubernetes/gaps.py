"""What Deployment and Service cannot express, or express differently from `docker run`."""

import re
from collections.abc import Iterator

from gb300serve.plan.model import ContainerPlan, Plan, Secret, split_port
from gb300serve.render.docker_run import client_path
from gb300serve.render.kubernetes.volumes import (
    has_own_shm,
    is_annotation,
    is_guessed_file,
    object_name,
    parse_user_ids,
    quantity,
    unsupported_tmpfs_options,
)
from gb300serve.render.target import RESTART_MESSAGE, TO_DO, Gap, bind_mounts, common_gaps, different, omitted

_SUPPORTED_SECURITY = re.compile(r"no-new-privileges(?:[:=]true)?|seccomp[:=]unconfined")
_PLAIN_PORT = re.compile(r"\d+(?::\d+)?(?:/tcp)?", re.ASCII)


def kubernetes_gaps(plan: Plan) -> tuple[Gap, ...]:
    """All gaps, in the order of the container's options."""
    c = plan.container
    return (
        *common_gaps(plan),
        *_devices(c),
        *_namespaces(c),
        *_limits(c),
        *_security(c),
        *_log_and_restart(c, "Deployment" if plan.nodes == 1 else "LeaderWorkerSet"),
        *_volumes_and_labels(plan),
        *_ports(c),
        *_secrets(plan),
    )


def _devices(c: ContainerPlan) -> Iterator[Gap]:
    if c.gpus == "all":
        yield different("gpus", "the pod requests one GPU, because it cannot request all", "set gpus to a count")
    elif c.gpus and not c.gpus.isdecimal():
        hint = "select the node with a nodeSelector"
        yield omitted("gpus", "a pod can request a number of GPUs, but not specific ones", hint)
    for device in c.devices:
        yield omitted("devices", f"{device} is omitted: pods get devices only from device plugins")


def _namespaces(c: ContainerPlan) -> Iterator[Gap]:
    if shared := next((name for name in ("ipc", "network", "pid") if getattr(c, name) == "host"), None):
        hint = "set the Pod Security Standard of the namespace to privileged"
        yield different(shared, "the pod uses host namespaces, which only a privileged namespace admits", hint)
    if c.ipc not in (None, "host", "private"):
        yield omitted("ipc", f"`{c.ipc}` is omitted: a pod has the host's IPC namespace or its own")
    if c.network not in (None, "host", "bridge", "default"):
        yield omitted("network", f"`{c.network}` is omitted: a pod uses the host's network or the cluster's")
    if c.pid not in (None, "host"):
        yield omitted("pid", f"`{c.pid}` is omitted: a pod has the host's PID namespace or its own")
    if c.init:
        hint = "shareProcessNamespace: true adds one"
        yield omitted("init", "the pod has no init process that reaps the engine's child processes", hint)


def _limits(c: ContainerPlan) -> Iterator[Gap]:
    if c.shm_size is not None and c.ipc == "host":
        yield different("shm_size", "shared memory is the host's, as with `docker run --ipc host`")
    elif c.shm_size is not None and not has_own_shm(c):
        yield omitted("shm_size", f"`{c.shm_size}` is omitted: it is not a whole number and a unit", "write 16g")
    if c.memory is not None and quantity(c.memory) is None:
        yield omitted("memory", f"`{c.memory}` is omitted: it is not a whole number and a unit", "write 64g")
    for name in c.ulimits:
        hint = "IPC_LOCK in cap_add lifts it" if name == "memlock" else "set it in the node's container runtime"
        yield omitted("ulimits", f"{name} is omitted: pods have no ulimits", hint)


def _security(c: ContainerPlan) -> Iterator[Gap]:
    for option in c.security_opt:
        if not _SUPPORTED_SECURITY.fullmatch(option):
            hint = "install the profile on the node and name it in securityContext"
            yield omitted("security_opt", f"`{option}` is omitted: its profile must exist on the node", hint)
    if c.user and parse_user_ids(c.user)[0] is None:
        yield omitted("user", f"`{c.user}` is omitted: pods accept only numeric IDs", "write UID:GID")


def _log_and_restart(c: ContainerPlan, kind: str) -> Iterator[Gap]:
    if c.log_driver or c.log_options:
        yield omitted("log", "log options are omitted: the node's container runtime manages the log")
    if c.restart not in ("always", "unless-stopped"):
        message = f"`{c.restart}` is omitted: a {kind} always restarts its pods, so a failed boot is repeated"
        yield omitted("restart", message, "`kubectl logs --previous` shows the first error")
    else:
        yield different("restart", RESTART_MESSAGE.format(c.restart))


def _volumes_and_labels(plan: Plan) -> Iterator[Gap]:
    c = plan.container
    mounts = bind_mounts(c)
    if mounts:
        hint = "select the nodes with a nodeSelector"
        yield different("mounts", "the source paths must exist on every node that may run the pod", hint)
    for mount in mounts:
        if is_guessed_file(mount, plan):
            yield different("mounts", f"{mount.source} is assumed to be a file, because {mount.target} has a suffix")
    for option in unsupported_tmpfs_options(c):
        yield omitted("tmpfs", f"`{option}` is omitted: a memory volume has no option but its size")
    for key in c.labels:
        if not is_annotation(key):
            yield omitted("labels", f"`{key}` is omitted: it is not a valid annotation key")


def _ports(c: ContainerPlan) -> Iterator[Gap]:
    for port in c.ports:
        outside, inside = split_port(port)
        if not _PLAIN_PORT.fullmatch(port):
            ignored = "port ranges are not supported" if inside is None else "its address and protocol are ignored"
            yield omitted("ports", f"{port}: {ignored}")
        elif outside is not None:
            message = f"{port}: the Service opens port {outside} on its cluster address, not on the host"
            yield different("ports", message)


def _secrets(plan: Plan) -> Iterator[Gap]:
    if plan.container.secrets:
        values = " ".join(map(_literal_argument, plan.container.secrets))
        name = f"{object_name(plan)}-secrets"
        hint = f"kubectl create secret generic {name} {values}"
        yield Gap(TO_DO, ("container", "secrets"), f"the pod reads its secrets from the Secret {name}", hint)


def _literal_argument(secret: Secret) -> str:
    """`$(cat …)` drops the line feed at the end of the file."""
    value = f"$(cat {client_path(secret.file)})" if secret.file else f"${secret.env}"
    return f'--from-literal={secret.name}="{value}"'
