"""A plan as the body that Docker's client posts for the printed `docker run` line. Pure.

Docker's Python library fills in defaults of its own in a dozen fields, so its helpers are not used here. The body was
recorded from the clients 20.10 and 28.2, which say the same; fields of Windows containers are left out.
"""

from collections.abc import Mapping
from types import MappingProxyType

from gb300serve.adapters import docker_words as words
from gb300serve.adapters.docker_words import Json
from gb300serve.plan.model import ContainerPlan, Plan
from gb300serve.plan.words import SECRET, mount_word

NO_PROFILES: Mapping[str, str] = MappingProxyType({})
# What the daemon itself understands; any other value is a file that the client reads and sends.
_SECCOMP_WORDS = ("unconfined", "builtin")


def create_body(
    plan: Plan, labels: Mapping[str, str], secrets: Mapping[str, str], profiles: Mapping[str, str] = NO_PROFILES
) -> Json:
    """The body of `POST /containers/create`. `secrets` are values by name, `profiles` seccomp profiles by file name.

    A secret without a value is a KeyError: whoever compiles a plan names every secret, whoever launches reads them all.

    Raises DockerWordError (exit 4) for an option's value that the client would not take.
    """
    container = plan.container
    bindings = words.port_bindings(container.ports)
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
        "Cmd": [_with_secret(word, secrets) for word in plan.command] or None,
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
    return body


def seccomp_files(container: ContainerPlan) -> tuple[str, ...]:
    """The seccomp profiles that are files on the client."""
    return tuple(file for word in container.security_opt if (file := _seccomp_file(word)))


def restart_policy(policy: str) -> Json:
    """`on-failure:3`, `unless-stopped`, `always` or `no`."""
    name, _, count = policy.partition(":")
    return {"Name": name, "MaximumRetryCount": int(count or 0)}


def _environment(container: ContainerPlan, secrets: Mapping[str, str]) -> list[str]:
    plain = [f"{name}={value}" for name, value in container.env.items()]
    return plain + [f"{secret.name}={secrets[secret.name]}" for secret in container.secrets]


def _with_secret(word: str, secrets: Mapping[str, str]) -> str:
    return SECRET.sub(lambda found: secrets[found[1]], word)


def _host_config(container: ContainerPlan, bindings: Mapping[str, list[Json]], profiles: Mapping[str, str]) -> Json:
    config: Json = {
        **_UNUSED,
        "Binds": [mount_word(mount) for mount in container.mounts] or None,
        "LogConfig": {"Type": container.log_driver or "", "Config": dict(container.log_options)},
        "NetworkMode": container.network or "default",
        "PortBindings": dict(bindings),
        # Never at creation: it is applied after READY.
        "RestartPolicy": restart_policy("no"),
        "CapAdd": words.capabilities(container.cap_add),
        "IpcMode": container.ipc or "",
        "PidMode": container.pid or "",
        "ShmSize": words.size("container.shm_size", container.shm_size),
        "Memory": words.size("container.memory", container.memory),
        "Devices": words.devices(container.devices),
        "DeviceRequests": (words.gpu_requests(container.gpus) + words.cdi_requests(container.devices)) or None,
        "Ulimits": words.ulimits(container.ulimits),
        **_security(container.security_opt, profiles),
    }
    if container.tmpfs:
        config["Tmpfs"] = words.tmpfs(container.tmpfs)
    if container.init:
        config["Init"] = True
    return config


def _security(options: tuple[str, ...], profiles: Mapping[str, str]) -> Json:
    """The options, profiles by content; `systempaths=unconfined` is not one for the daemon but two empty lists."""
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
        raise words.DockerWordError("container.security_opt", word, "NAME=VALUE or no-new-privileges")
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
    "ExtraHosts": None,
    "GroupAdd": None,
    "Cgroup": "",
    "Links": None,
    "OomScoreAdj": 0,
    "Privileged": False,
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
    "CpusetCpus": "",
    "CpusetMems": "",
    "DeviceCgroupRules": None,
    "MemoryReservation": 0,
    "MemorySwap": 0,
    "MemorySwappiness": -1,
    "OomKillDisable": False,
    "PidsLimit": 0,
}
