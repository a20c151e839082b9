"""A plan as the body that Docker's client posts for the printed `docker run` line.

Docker's Python library sets other defaults in a dozen fields, so its helpers are not used here. The body was recorded
from the clients 20.10 and 28.2, which send the same; fields of Windows containers are omitted.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from gb300serve.core.errors import CompileError
from gb300serve.plan.model import (
    SECRET,
    ContainerPlan,
    HealthCheck,
    Plan,
    duration_seconds,
    mount_argument,
    parse_size,
    split_host,
)

Json = dict[str, Any]

_PORT = re.compile(r"(?:(?P<ip>\[[^\]]*\]|[^:]*):)??(?:(?P<host>[\d-]*):)?(?P<inside>[\d-]+)(?:/(?P<protocol>\w+))?")
# vendor.tld/class=name: a device of the Container Device Interface.
_CDI = re.compile(r"[A-Za-z][\w.-]*/[A-Za-z][\w-]*=[\w.:-]+")


class DockerOptionError(CompileError):
    """Docker's client would reject the value of an option."""

    def __init__(self, option: str, text: str, expected: str) -> None:
        super().__init__(f"{option}: {text!r} is not valid", hint=f"write {expected}")


def size(option: str, text: str | None) -> int:
    """`16g` → bytes, in powers of 1024; 0 for None, which leaves the choice to the daemon."""
    if text is None:
        return 0
    found = parse_size(text)
    if found is None:
        raise DockerOptionError(option, text, "a number and b, k, m, g, t or p, such as 16g")
    return found.bytes


def capabilities(words: tuple[str, ...]) -> list[str] | None:
    """Sorted and unique, with the prefix CAP_ except for ALL."""
    bare = {word.upper().removeprefix("CAP_") for word in words}
    return sorted(name if name == "ALL" else f"CAP_{name}" for name in bare) or None


def ulimits(limits: dict[str, int | tuple[int, int]]) -> list[Json]:
    """Soft and hard limits; a single number is both."""
    pairs = {name: value if isinstance(value, tuple) else (value, value) for name, value in limits.items()}
    return [{"Name": name, "Hard": pairs[name][1], "Soft": pairs[name][0]} for name in sorted(pairs)]


def gpu_requests(selection: str | None) -> list[Json]:
    """`all`, a count, or `device=` and a comma-separated list."""
    if selection is None:
        return []
    request: Json = {"Driver": "", "Count": 0, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}
    chosen = selection.strip('"')
    if chosen.startswith("device="):
        return [request | {"DeviceIDs": chosen.removeprefix("device=").split(",")}]
    if chosen == "all":
        return [request | {"Count": -1}]
    if not chosen.isdecimal():
        raise DockerOptionError("container.gpus", selection, "all, a count, or device=GPU-uuid[,GPU-uuid]")
    return [request | {"Count": int(chosen)}]


def cdi_requests(words: tuple[str, ...]) -> list[Json]:
    """The devices of the Container Device Interface, as one request."""
    names = [word for word in words if _CDI.fullmatch(word)]
    return [{"Driver": "cdi", "Count": 0, "DeviceIDs": names, "Capabilities": None, "Options": None}] if names else []


def devices(words: tuple[str, ...]) -> list[Json]:
    """`/dev/a[:/dev/b][:rwm]`, without the devices of the Container Device Interface."""
    return [_device(word) for word in words if not _CDI.fullmatch(word)]


def _device(word: str) -> Json:
    outside, *rest = word.split(":")
    if len(rest) > 2 or not outside:
        raise DockerOptionError("container.devices", word, "/dev/path[:/dev/path][:rwm]")
    modes = rest.pop() if rest and (len(rest) == 2 or _is_mode(rest[0])) else "rwm"
    return {"PathOnHost": outside, "PathInContainer": rest[0] if rest else outside, "CgroupPermissions": modes}


def _is_mode(word: str) -> bool:
    return word != "" and set(word) <= set("rwm") and len(set(word)) == len(word)


def port_bindings(words: tuple[str, ...]) -> dict[str, list[Json]]:
    """`[ip:][host[-host]:]inside[-inside][/protocol]` → `inside/protocol` → host addresses."""
    bindings: dict[str, list[Json]] = {}
    for word in words:
        for inside, binding in _port_pairs(word):
            bindings.setdefault(inside, []).append(binding)
    return bindings


def _port_pairs(word: str) -> Iterator[tuple[str, Json]]:
    expected = "[ip:][host-port:]container-port[/protocol], such as 8021:8000"
    found = _PORT.fullmatch(word)
    inside, outside = (_range(found["inside"]), _range(found["host"] or "")) if found else ((), ())
    if not found or not inside or (found["host"] and not outside):
        raise DockerOptionError("container.ports", word, expected)
    address = (found["ip"] or "").strip("[]")
    if len(outside) > 1 and len(inside) == 1:  # Docker picks a free one
        hosts: tuple[str, ...] = (found["host"],)
    elif outside and len(outside) != len(inside):
        raise DockerOptionError("container.ports", word, "equally many ports before and after the colon")
    else:
        hosts = tuple(map(str, outside)) or ("",) * len(inside)
    protocol = (found["protocol"] or "tcp").lower()
    for port, host in zip(inside, hosts, strict=True):
        yield f"{port}/{protocol}", {"HostIp": address, "HostPort": host}


def _range(text: str) -> tuple[int, ...]:
    """`8000-8003` → each port; empty if the text is not valid."""
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        return ()
    ports = tuple(range(int(first), int(last or first) + 1))
    return ports if ports and ports[0] > 0 and ports[-1] < 65536 else ()


def tmpfs(words: tuple[str, ...]) -> dict[str, str]:
    """`/run:size=64m` → path and options."""
    return {path: options for path, _, options in (word.partition(":") for word in words)}


NO_PROFILES: Mapping[str, str] = MappingProxyType({})
# Values for the daemon; any other value is a file that the client reads and sends.
_SECCOMP_WORDS = ("unconfined", "builtin")


def create_body(
    plan: Plan, labels: Mapping[str, str], secrets: Mapping[str, str], profiles: Mapping[str, str] = NO_PROFILES
) -> Json:
    """The body of `POST /containers/create`. `secrets` are values by name, `profiles` seccomp profiles by file name.

    Raises DockerOptionError (exit 4) if the client would reject an option, KeyError if a secret has no value.
    """
    container = plan.container
    bindings = port_bindings(container.ports)
    body: Json = {
        "Hostname": "",
        "Domainname": "",
        "User": container.user or "",
        "AttachStdin": False,
        "AttachStdout": False,
        "AttachStderr": False,
        "Tty": False,
        "OpenStdin": False,
        "StdinOnce": False,
        "Env": _environment(container, secrets) or None,
        "Cmd": [SECRET.sub(lambda found: secrets[found[1]], word) for word in plan.command] or None,
        "Image": plan.image,
        "Volumes": {},
        "WorkingDir": container.workdir or "",
        "Entrypoint": None if container.entrypoint is None else [container.entrypoint],
        "OnBuild": None,
        "Labels": {**container.labels, **labels},
        "HostConfig": _host_config(container, bindings, profiles),
        "NetworkingConfig": {"EndpointsConfig": {}},
    }
    if bindings:
        body["ExposedPorts"] = {port: {} for port in bindings}
    if container.stop_timeout is not None:
        body["StopTimeout"] = container.stop_timeout
    if container.healthcheck is not None and (check := health_check(container.healthcheck)):
        body["Healthcheck"] = check
    return body


def health_check(check: HealthCheck) -> Json:
    """The health check with durations in nanoseconds; what is not set is left out."""
    if check.disable:
        return {"Test": ["NONE"]}
    times = {
        "Interval": check.interval, "Timeout": check.timeout, "StartPeriod": check.start_period,
        "StartInterval": check.start_interval,
    }  # fmt: skip
    found: Json = {"Test": ["CMD-SHELL", check.test]} if check.test else {}
    found |= {key: round(duration_seconds(text) * 1e9) for key, text in times.items() if text}
    return {key: value for key, value in (found | {"Retries": check.retries}).items() if value}


def extra_hosts(words: tuple[str, ...]) -> list[str]:
    """`name:address` or `name=address`, with the colon that the daemon expects."""
    found = []
    for word in words:
        name, address = split_host(word)
        if not name or not address or ":" in name:
            raise DockerOptionError("container.add_host", word, "NAME:ADDRESS, such as db:10.0.0.5")
        found.append(f"{name}:{address}")
    return found


def seccomp_files(container: ContainerPlan) -> tuple[str, ...]:
    """The seccomp profiles that are files on the client's machine."""
    return tuple(file for word in container.security_opt if (file := _seccomp_file(word)))


def restart_policy(policy: str) -> Json:
    """`on-failure:3`, `unless-stopped`, `always` or `no`."""
    name, _, count = policy.partition(":")
    return {"Name": name, "MaximumRetryCount": int(count or 0)}


def _environment(container: ContainerPlan, secrets: Mapping[str, str]) -> list[str]:
    plain = [f"{name}={value}" for name, value in container.env.items()]
    return plain + [f"{secret.name}={secrets[secret.name]}" for secret in container.secrets]


def _host_config(container: ContainerPlan, bindings: Mapping[str, list[Json]], profiles: Mapping[str, str]) -> Json:
    config: Json = {
        **_UNUSED,
        "Binds": [mount_argument(mount) for mount in container.mounts] or None,
        "LogConfig": {"Type": container.log_driver or "", "Config": dict(container.log_options)},
        "NetworkMode": container.network or "default",
        "PortBindings": dict(bindings),
        # Never at creation: it is applied after READY.
        "RestartPolicy": restart_policy("no"),
        "CapAdd": capabilities(container.cap_add),
        "IpcMode": container.ipc or "",
        "PidMode": container.pid or "",
        "ShmSize": size("container.shm_size", container.shm_size),
        "Memory": size("container.memory", container.memory),
        "MemorySwap": -1 if container.memory_swap == "-1" else size("container.memory_swap", container.memory_swap),
        "CpusetCpus": container.cpuset_cpus or "",
        "Privileged": container.privileged,
        "GroupAdd": list(container.group_add) or None,
        "ExtraHosts": extra_hosts(container.add_host) or None,
        "Devices": devices(container.devices),
        "DeviceRequests": (gpu_requests(container.gpus) + cdi_requests(container.devices)) or None,
        "Ulimits": ulimits(container.ulimits),
        **_security(container.security_opt, profiles),
    }
    if container.tmpfs:
        config["Tmpfs"] = tmpfs(container.tmpfs)
    if container.init:
        config["Init"] = True
    return config


def _security(options: tuple[str, ...], profiles: Mapping[str, str]) -> Json:
    """The options with the content of profiles; `systempaths=unconfined` becomes two empty lists."""
    kept = [
        f"seccomp={profiles[file]}" if (file := _seccomp_file(word)) else word
        for word in options
        if word != "systempaths=unconfined"
    ]
    paths: list[str] | None = [] if "systempaths=unconfined" in options else None
    return {"SecurityOpt": kept if options else None, "MaskedPaths": paths, "ReadonlyPaths": paths}


def _seccomp_file(word: str) -> str | None:
    """The file of `seccomp=FILE` (older: `seccomp:FILE`)."""
    key, separator, value = word.partition("=" if "=" in word else ":")
    if word != "no-new-privileges" and not (separator and value):
        raise DockerOptionError("container.security_opt", word, "NAME=VALUE or no-new-privileges")
    return value if key == "seccomp" and value not in _SECCOMP_WORDS else None


_UNUSED: Mapping[str, object] = {
    "ContainerIDFile": "",
    "AutoRemove": False,
    "VolumeDriver": "",
    "VolumesFrom": None,
    "ConsoleSize": [0, 0],
    "CapDrop": None,
    "CgroupnsMode": "",
    "Dns": [],
    "DnsOptions": [],
    "DnsSearch": [],
    "Cgroup": "",
    "Links": None,
    "OomScoreAdj": 0,
    "PublishAllPorts": False,
    "ReadonlyRootfs": False,
    "UTSMode": "",
    "UsernsMode": "",
    "Isolation": "",
    "CpuShares": 0,
    "NanoCpus": 0,
    "CgroupParent": "",
    "BlkioWeight": 0,
    "BlkioWeightDevice": [],
    "BlkioDeviceReadBps": [],
    "BlkioDeviceWriteBps": [],
    "BlkioDeviceReadIOps": [],
    "BlkioDeviceWriteIOps": [],
    "CpuPeriod": 0,
    "CpuQuota": 0,
    "CpuRealtimePeriod": 0,
    "CpuRealtimeRuntime": 0,
    "CpusetMems": "",
    "DeviceCgroupRules": None,
    "MemoryReservation": 0,
    "MemorySwappiness": -1,
    "OomKillDisable": False,
    "PidsLimit": 0,
}
