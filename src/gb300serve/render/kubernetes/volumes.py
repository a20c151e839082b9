"""Bind mounts, shared memory and tmpfs as volumes of a pod."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from gb300serve.plan.model import ContainerPlan, Mount, Plan, parse_size, split_host, split_port
from gb300serve.render.docker_run import shell_value
from gb300serve.render.target import RESTART_MESSAGE, TO_DO, Gap, bind_mounts, common_gaps, different, omitted
from gb300serve.render.target import volumes as named_volumes

_UNITS = {"": "", "k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti", "p": "Pi"}
_ANNOTATION = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_USER = re.compile(r"(\d+)(?::(\d+))?", re.ASCII)


def object_name(plan: Plan) -> str:
    """The container's name, or the lane's, as a DNS label: at most 50 characters, so that a suffix still fits 63."""
    name = re.sub(r"[^a-z0-9]+", "-", (plan.container.name or plan.lane).lower()).strip("-")
    return (name if name[:1].isalpha() else f"lane-{name}")[:50].rstrip("-")


def quantity(text: str) -> str | None:
    """`16g` → `16Gi`: Docker's units are powers of 1024. None if it is not a whole number and a unit."""
    size = parse_size(text)
    return f"{size.number}{_UNITS[size.unit]}" if size is not None and size.number.isdecimal() else None


def parse_user_ids(user: str | None) -> tuple[int | None, int | None]:
    """`1000:1000` → both IDs; None for names, which only the image can resolve."""
    match = _USER.fullmatch(user or "")
    return (int(match[1]), int(match[2]) if match[2] else None) if match else (None, None)


def is_annotation(key: str) -> bool:
    """Whether the key of a Docker label is a valid annotation key."""
    return _ANNOTATION.fullmatch(key) is not None


def annotations(container: ContainerPlan) -> dict[str, str]:
    """Docker labels as annotations: the values of Kubernetes labels are restricted."""
    return {key: value for key, value in container.labels.items() if is_annotation(key)}


Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Volume:
    """An entry of `volumes` and its entry of `volumeMounts`."""

    source: Object
    mount: Object


def pod_volumes(plan: Plan) -> tuple[Volume, ...]:
    """All volumes, in the order of the mounts."""
    c = plan.container
    volumes = [_host_path(f"mount-{n}", mount, plan) for n, mount in enumerate(bind_mounts(c))]
    volumes += (_claim(f"volume-{n}", mount) for n, mount in enumerate(named_volumes(c)))
    if has_own_shm(c):
        volumes.append(_memory_volume("shm", "/dev/shm", quantity(c.shm_size or "")))  # noqa: S108 - the container's
    for n, mount in enumerate(c.tmpfs):
        path, size = split_tmpfs(mount)
        volumes.append(_memory_volume(f"tmpfs-{n}", path, size))
    return tuple(volumes)


def has_own_shm(c: ContainerPlan) -> bool:
    """With the host's IPC namespace, /dev/shm is the host's and `--shm-size` has no effect, as in Docker."""
    return c.shm_size is not None and c.ipc != "host" and quantity(c.shm_size) is not None


def split_tmpfs(mount: str) -> tuple[str, str | None]:
    """`/tmp:size=1g` → path and quantity."""
    path, _, options = mount.partition(":")
    sizes = [option.removeprefix("size=") for option in options.split(",") if option.startswith("size=")]
    return path, quantity(sizes[-1]) if sizes else None


def is_guessed_file(mount: Mount, plan: Plan) -> bool:
    """Whether only the suffix of the target suggests that the source is a file."""
    return mount.sha256 is None and mount.source != plan.model_path and bool(PurePosixPath(mount.target).suffix)


def _host_path(name: str, mount: Mount, plan: Plan) -> Volume:
    # Kubernetes rejects a source that is missing or of another type.
    kind = "File" if isinstance(mount.sha256, str) or is_guessed_file(mount, plan) else "Directory"
    source = {"name": name, "hostPath": {"path": mount.source, "type": kind}}
    return Volume(source, {"name": name, "mountPath": mount.target} | ({"readOnly": True} if mount.read_only else {}))


def _claim(name: str, mount: Mount) -> Volume:
    """A named volume is a claim of that name in the namespace of the pod."""
    source = {"name": name, "persistentVolumeClaim": {"claimName": claim_name(mount.source)}}
    return Volume(source, {"name": name, "mountPath": mount.target} | ({"readOnly": True} if mount.read_only else {}))


def claim_name(volume: str) -> str:
    """The name of a volume as the name of an object."""
    return re.sub(r"[^a-z0-9.-]+", "-", volume.lower()).strip("-.") or "volume"


def _memory_volume(name: str, path: str, size: str | None) -> Volume:
    limit = {"sizeLimit": size} if size else {}
    return Volume({"name": name, "emptyDir": {"medium": "Memory"} | limit}, {"name": name, "mountPath": path})


def host_alias(host: str) -> Object | None:
    """`NAME:ADDRESS` as an entry of `hostAliases`; None for `host-gateway`, which only Docker knows."""
    name, address = split_host(host)
    return None if address in ("", "host-gateway") else {"ip": address, "hostnames": [name]}


def unsupported_tmpfs_options(c: ContainerPlan) -> Iterator[str]:
    """Options of tmpfs mounts that a memory volume cannot express."""
    for mount in c.tmpfs:
        for option in filter(None, mount.partition(":")[2].split(",")):
            if not (option.startswith("size=") and quantity(option.removeprefix("size="))):
                yield option


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
    if c.cpuset_cpus is not None:
        yield omitted("cpuset_cpus", f"`{c.cpuset_cpus}` is omitted: the kubelet assigns CPUs")
    if c.memory_swap is not None:
        yield omitted("memory_swap", f"`{c.memory_swap}` is omitted: the kubelet decides about swap")
    for host in c.add_host:
        if host_alias(host) is None:
            yield omitted("add_host", f"`{host}` is omitted: a pod needs the address of the host")
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
    for group in c.group_add:
        if not group.isdecimal():
            yield omitted("group_add", f"`{group}` is omitted: pods accept only numeric IDs", "write the GID")
    if c.privileged:
        hint = "set the Pod Security Standard of the namespace to privileged"
        yield different("privileged", "only a privileged namespace admits the pod", hint)
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
    for mount in named_volumes(c):
        message = f"the pod mounts the PersistentVolumeClaim {claim_name(mount.source)}, which must exist"
        yield Gap(TO_DO, ("container", "mounts"), message, "kubectl get persistentvolumeclaims")
    if c.healthcheck is not None:
        yield different("healthcheck", "it becomes the readiness probe: an unhealthy pod gets no requests")
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
        values = " ".join(f'--from-literal={secret.name}="{shell_value(secret)}"' for secret in plan.container.secrets)
        name = f"{object_name(plan)}-secrets"
        hint = f"kubectl create secret generic {name} {values}"
        yield Gap(TO_DO, ("container", "secrets"), f"the pod reads its secrets from the Secret {name}", hint)
