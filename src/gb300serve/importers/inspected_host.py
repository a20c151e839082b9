"""`HostConfig` of an inspected container as the options of `docker run` that say it."""

from collections.abc import Iterator, Mapping
from typing import Any

from gb300serve.importers.docker_words import DockerOption
from gb300serve.importers.report import TextPosition

_AT = TextPosition(1, 1)
_SHM_DEFAULT = 64 << 20  # bytes; dockerd's own
_UNSAID = {
    "Privileged": "privileged", "ReadonlyRootfs": "read-only", "PublishAllPorts": "publish-all", "AutoRemove": "rm",
}  # fmt: skip
_LISTS = {
    "CapDrop": "cap-drop",
    "Dns": "dns",
    "ExtraHosts": "add-host",
    "GroupAdd": "group-add",
    "SecurityOpt": "security-opt",
}
_VALUES = {
    "CpusetCpus": "cpuset-cpus",
    "CpusetMems": "cpuset-mems",
    "PidsLimit": "pids-limit",
    "UTSMode": "uts",
}


def mapping(value: Any) -> dict[str, Any]:
    """A mapping, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """A list, an empty one for anything else."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """A text, an empty one for what is not a text or a number."""
    return (
        value
        if isinstance(value, str)
        else str(value)
        if isinstance(value, int) and not isinstance(value, bool)
        else ""
    )


def host_options(inspected: Mapping[str, Any], host: Mapping[str, Any]) -> Iterator[DockerOption]:
    """The options in the order in which a plan prints them."""
    for source in (_gpus(host), _modes(host), _limits(host), _mounts(inspected, host), _ports(host), _others(host)):
        for name, value in source:
            if value != "":
                yield DockerOption(name, value, _AT)


Said = Iterator[tuple[str, str | None]]


def _gpus(host: Mapping[str, Any]) -> Said:
    for request in map(mapping, listed(host.get("DeviceRequests"))):
        names = [text(name) for name in listed(request.get("DeviceIDs"))]
        if request.get("Driver") == "cdi":
            yield from (("device", name) for name in names)
        elif any("gpu" in listed(group) for group in listed(request.get("Capabilities"))):
            yield "gpus", f'"device={",".join(names)}"' if names else text(request.get("Count"))
    if host.get("Runtime") == "nvidia":
        yield "runtime", "nvidia"


def _modes(host: Mapping[str, Any]) -> Said:
    if (ipc := text(host.get("IpcMode"))) not in ("", "private", "shareable"):
        yield "ipc", ipc
    if (network := text(host.get("NetworkMode"))) not in ("", "default", "bridge"):
        yield "network", network
    if isinstance(shm := host.get("ShmSize"), int) and shm not in (0, _SHM_DEFAULT):
        yield "shm-size", _size(shm)
    if isinstance(memory := host.get("Memory"), int) and memory > 0:
        yield "memory", _size(memory)
    if pid := text(host.get("PidMode")):
        yield "pid", pid
    if host.get("Init") is True:
        yield "init", None


def _size(size: int) -> str:
    """Bytes, in the largest unit that loses none: dockerd reads `24g` as 24 GiB."""
    for shift, unit in ((30, "g"), (20, "m"), (10, "k")):
        if size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)


def _limits(host: Mapping[str, Any]) -> Said:
    for limit in map(mapping, listed(host.get("Ulimits"))):
        yield "ulimit", f"{text(limit.get('Name'))}={text(limit.get('Soft'))}:{text(limit.get('Hard'))}"
    for name in listed(host.get("CapAdd")):
        yield "cap-add", text(name).removeprefix("CAP_")


def _mounts(inspected: Mapping[str, Any], host: Mapping[str, Any]) -> Said:
    for bind in listed(host.get("Binds")):
        yield "volume", text(bind)
    for mount in map(mapping, listed(host.get("Mounts"))):
        mode = ",readonly" if mount.get("ReadOnly") is True else ""
        kind, source, target = text(mount.get("Type")), text(mount.get("Source")), text(mount.get("Target"))
        yield "mount", f"type={kind},source={source},target={target}{mode}"
    if not host.get("Binds") and not host.get("Mounts"):
        for mount in map(mapping, listed(inspected.get("Mounts"))):
            if mount.get("Type") == "bind":
                mode = ":ro" if mount.get("RW") is False else ""
                yield "volume", f"{text(mount.get('Source'))}:{text(mount.get('Destination'))}{mode}"
    for target, options in mapping(host.get("Tmpfs")).items():
        yield "tmpfs", f"{target}:{text(options)}" if text(options) else target


def _ports(host: Mapping[str, Any]) -> Said:
    for inside, bindings in mapping(host.get("PortBindings")).items():
        port = inside.removesuffix("/tcp")
        for binding in map(mapping, listed(bindings)):
            words = (text(binding.get("HostIp")), text(binding.get("HostPort")), port)
            yield "publish", ":".join(word for word in words if word)


def _others(host: Mapping[str, Any]) -> Said:
    for key, name in _LISTS.items():
        yield from ((name, text(value)) for value in listed(host.get(key)))
    for device in map(mapping, listed(host.get("Devices"))):
        outside, inside = text(device.get("PathOnHost")), text(device.get("PathInContainer"))
        rights = text(device.get("CgroupPermissions"))
        words = [
            outside,
            *([inside] if inside != outside or rights not in ("", "rwm") else []),
            *([rights] if rights not in ("", "rwm") else []),
        ]
        yield "device", ":".join(words)
    log = mapping(host.get("LogConfig"))
    if (driver := text(log.get("Type"))) and (driver != "json-file" or mapping(log.get("Config"))):
        yield "log-driver", driver
        yield from (("log-opt", f"{key}={text(value)}") for key, value in mapping(log.get("Config")).items())
    policy = mapping(host.get("RestartPolicy"))
    if (name := text(policy.get("Name"))) not in ("", "no"):
        retries = policy.get("MaximumRetryCount")
        yield "restart", f"{name}:{retries}" if isinstance(retries, int) and retries and name == "on-failure" else name
    if isinstance(nano := host.get("NanoCpus"), int) and nano > 0:
        yield "cpus", f"{nano / 1e9:g}"
    yield from ((name, None) for key, name in _UNSAID.items() if host.get(key) is True)
    yield from ((name, text(host[key])) for key, name in _VALUES.items() if text(host.get(key)) not in ("", "0", "-1"))
