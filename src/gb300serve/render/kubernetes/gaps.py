"""What Deployment and Service do not say as `docker run` does. Pure."""

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
from gb300serve.render.target import TO_DO, Gap, bind_mounts, common_gaps, different, omitted

_KNOWN_SECURITY = re.compile(r"no-new-privileges(?:[:=]true)?|seccomp[:=]unconfined")
_PLAIN_PORT = re.compile(r"\d+(?::\d+)?(?:/tcp)?", re.ASCII)


def kubernetes_gaps(plan: Plan) -> tuple[Gap, ...]:
    """All of them, in the order of the container's options."""
    c = plan.container
    return (
        *common_gaps(plan),
        *_devices(c),
        *_sharing(c),
        *_limits(c),
        *_security(c),
        *_life(c, "Deployment" if plan.nodes == 1 else "LeaderWorkerSet"),
        *_places(plan),
        *_ports(c),
        *_secrets(plan),
    )


def _devices(c: ContainerPlan) -> Iterator[Gap]:
    if c.gpus == "all":
        yield different("gpus", "one GPU is asked for: a pod cannot ask for all of them", "write the count")
    elif c.gpus and not c.gpus.isdecimal():
        yield omitted("gpus", "a pod asks for a number of GPUs, not for these", "use a nodeSelector")
    for device in c.devices:
        yield omitted("devices", f"{device} is left out: a pod gets devices from a device plugin alone")


def _sharing(c: ContainerPlan) -> Iterator[Gap]:
    if shared := next((name for name in ("ipc", "network", "pid") if getattr(c, name) == "host"), None):
        yield different(
            shared, "the host's namespaces need a namespace that admits privileged pods", "Pod Security Admission"
        )
    if c.ipc not in (None, "host", "private"):
        yield omitted("ipc", f"`{c.ipc}` is left out: it is the host's or the pod's own")
    if c.network not in (None, "host", "bridge", "default"):
        yield omitted("network", f"`{c.network}` is left out: it is the host's or the cluster's")
    if c.pid not in (None, "host"):
        yield omitted("pid", f"`{c.pid}` is left out: it is the host's or the pod's own")
    if c.init:
        yield omitted("init", "no init process reaps the engine's children", "shareProcessNamespace: true does")


def _limits(c: ContainerPlan) -> Iterator[Gap]:
    if c.shm_size is not None and c.ipc == "host":
        yield different("shm_size", "shared memory is the host's, as with docker and ipc host")
    elif c.shm_size is not None and not has_own_shm(c):
        yield omitted("shm_size", f"`{c.shm_size}` is left out: it is no whole number of a unit", "write 16g")
    if c.memory is not None and quantity(c.memory) is None:
        yield omitted("memory", f"`{c.memory}` is left out: it is no whole number of a unit", "write 64g")
    for name in c.ulimits:
        helps = "the capability IPC_LOCK lifts it" if name == "memlock" else "set it for the node's container runtime"
        yield omitted("ulimits", f"{name} is left out: a pod has no ulimits", helps)


def _security(c: ContainerPlan) -> Iterator[Gap]:
    for option in c.security_opt:
        if not _KNOWN_SECURITY.fullmatch(option):
            yield omitted("security_opt", f"`{option}` is left out", "profiles lie on the node: securityContext")
    if c.user and parse_user_ids(c.user)[0] is None:
        yield omitted("user", f"`{c.user}` is left out: a pod takes numbers", "write UID:GID")


def _life(c: ContainerPlan, kind: str) -> Iterator[Gap]:
    if c.log_driver or c.log_options:
        yield omitted("log", "the node's container runtime keeps the log its own way")
    if c.restart not in ("always", "unless-stopped"):
        yield omitted(
            "restart",
            f"`{c.restart}` is left out: a {kind} always restarts, and a boot that fails is repeated",
            "`kubectl logs --previous` has the first error",
        )
    else:
        yield different("restart", f"`{c.restart}` holds from the start, not from READY: a boot that fails is repeated")


def _places(plan: Plan) -> Iterator[Gap]:
    c = plan.container
    if bind_mounts(c):
        yield different("mounts", "these paths must exist on every node that may run it", "use a nodeSelector")
    for mount in bind_mounts(c):
        if is_guessed_file(mount, plan):
            yield different("mounts", f"{mount.source} is taken for a file, by the suffix of {mount.target}")
    for option in unsupported_tmpfs_options(c):
        yield omitted("tmpfs", f"`{option}` is left out: a volume in memory has a size alone")
    for key in c.labels:
        if not is_annotation(key):
            yield omitted("labels", f"`{key}` is left out: it is no key of an annotation")


def _ports(c: ContainerPlan) -> Iterator[Gap]:
    for word in c.ports:
        if _PLAIN_PORT.fullmatch(word):
            outside = split_port(word)[0]
            if outside is not None:
                yield different(
                    "ports", f"{word} is the Service's: port {outside} of the cluster's address, not the host's"
                )
        elif split_port(word)[1] is None:
            yield omitted("ports", f"{word} is left out: ranges are not followed")
        else:
            yield omitted("ports", f"{word}: address and protocol are left out")


def _secrets(plan: Plan) -> Iterator[Gap]:
    if plan.container.secrets:
        values = " ".join(map(_value, plan.container.secrets))
        hint = f"kubectl create secret generic {object_name(plan)}-secrets {values}"
        yield Gap(TO_DO, ("container", "secrets"), "the pod reads them from one Secret", hint)


def _value(secret: Secret) -> str:
    """The file's last line feed is no part of the value."""
    value = f"$(cat {client_path(secret.file)})" if secret.file else f"${secret.env}"
    return f'--from-literal={secret.name}="{value}"'
