"""The plan: the complete description of a launch, as data. Equal inputs give equal bytes on every machine."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from gb300serve.core.text import parse_digits
from gb300serve.core.values import EngineName, Value

GpuSelection = str | None
"""The value of `docker run --gpus`: `all`, a count such as `2`, or `device=GPU-uuid[,GPU-uuid]`; None for no GPU."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A bind mount, or a named volume. `sha256` is the digest of a file, or the digests of a directory's files."""

    source: str
    target: str
    read_only: bool = False
    sha256: str | dict[str, str] | None = None
    is_volume: bool = False
    """`source` is the name of a volume, not a path."""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The container's health check; what is None comes from the image. `test` is a command for the shell."""

    test: str | None = None
    interval: str | None = None
    timeout: str | None = None
    start_period: str | None = None
    start_interval: str | None = None
    retries: int | None = None
    disable: bool = False


@dataclass(frozen=True, slots=True)
class Secret:
    """A variable of the container whose value the client reads at launch, from `env` or from `file`."""

    name: str
    env: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """The container's options, under the names of `docker run`."""

    name: str
    """Empty if the recipe sets none: Docker then picks a random name."""
    gpus: GpuSelection = None
    ipc: str | None = None
    network: str | None = None
    shm_size: str | None = None
    ulimits: dict[str, int | tuple[int, int]] = field(default_factory=dict)
    cap_add: tuple[str, ...] = ()
    security_opt: tuple[str, ...] = ()
    privileged: bool = False
    init: bool = False
    stop_timeout: int | None = None
    user: str | None = None
    group_add: tuple[str, ...] = ()
    workdir: str | None = None
    pid: str | None = None
    memory: str | None = None
    cpuset_cpus: str | None = None
    memory_swap: str | None = None
    tmpfs: tuple[str, ...] = ()
    add_host: tuple[str, ...] = ()
    log_driver: str | None = None
    log_options: dict[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    ports: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    secrets: tuple[Secret, ...] = ()
    healthcheck: HealthCheck | None = None
    entrypoint: str | None = None
    restart: str = "no"
    """Applied after READY: under a restart policy, a bad flag causes dozens of boots that hide the first error."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One launch. `command` is the engine's argv after the image; secret values appear as `${secret:NAME}`."""

    recipe: str
    """`lane/release`, with `+set` if `--set` changed it."""
    lane: str
    release: str
    engine: EngineName
    engine_version: str | None
    image: str
    """`repository[:tag][@digest]`."""
    image_id: str | None
    container: ContainerPlan
    command: tuple[str, ...]
    served_names: tuple[str, ...]
    """The names that `/v1/models` lists; clients use the first."""
    port: int | None
    """The port for clients: the engine's port on the host network, else the published port, None without one."""
    model_path: str | None
    """The path of the model on the host."""
    nodes: int = 1
    """The number of machines that serve the model together; `plan.compile.node_plan` gives the plan of each."""
    ray: bool = False
    """The machines are connected by Ray, not by the engine's own processes."""
    launched_by: tuple[str, ...] = ()
    """The arguments at the start of `command` that name the program."""


_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgtp])?(i?b)?", re.IGNORECASE | re.ASCII)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


class Size(NamedTuple):
    """`number` as written; `unit` is a lower-case letter, or empty for bytes."""

    number: str
    unit: str

    @property
    def bytes(self) -> int:
        return int(float(self.number) * 1024 ** _POWERS[self.unit])


def parse_size(text: str) -> Size | None:
    """Parse `16g`, `1.5 GiB` or `512`; None for a size that Docker rejects."""
    match = _SIZE.fullmatch(text)
    return Size(match[1], (match[2] or "").lower()) if match else None


_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|ns|m|s)", re.ASCII)
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def duration_seconds(text: str) -> float:
    """`1m30s` → 90.0, in the units of Docker."""
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text))


def published_port(network: str | None, ports: Iterable[str], inside: int) -> int | None:
    """The host port of the container port `inside`; on the host network, the same port."""
    if network == "host":
        return inside
    for port in ports:
        host, container = split_port(port)
        if container == inside:
            return host
    return None


def split_port(text: str) -> tuple[int | None, int | None]:
    """The host and container port of a `-p` value; None for a missing port or a range."""
    parts = text.partition("/")[0].rsplit(":", 2)
    return parse_digits(parts[-2] if len(parts) > 1 else ""), parse_digits(parts[-1])


def split_host(text: str) -> tuple[str, str]:
    """The name and the address of an `--add-host` value: `db:10.0.0.5`, `db=10.0.0.5` or `db:[::1]`."""
    name, _, address = text.partition("=" if "=" in text else ":")
    return name, address.removeprefix("[").removesuffix("]")


SECRET = re.compile(r"\$\{secret:([A-Za-z_][A-Za-z0-9_]*)\}")


def secret_placeholder(name: str) -> str:
    """The placeholder of a secret's value in a plan."""
    return f"${{secret:{name}}}"


def secret_name(value: Value) -> str | None:
    """NAME if an option's value is `{secret: NAME}`."""
    if isinstance(value, dict) and len(value) == 1:  # `Mapping` would take ten times as long, for each option
        name = value.get("secret")
        return name if isinstance(name, str) else None
    return None


def with_secret_placeholders(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with each `{secret: NAME}`, also in lists, replaced by `${secret:NAME}`."""
    return {
        key: [_with_placeholder(item) for item in value] if isinstance(value, list) else _with_placeholder(value)
        for key, value in options.items()
    }


def _with_placeholder(value: Any) -> Any:
    name = secret_name(value)
    return value if name is None else secret_placeholder(name)


def mount_argument(mount: Mount) -> str:
    """The value of `-v`: `source:target[:ro]`."""
    return f"{mount.source}:{mount.target}" + (":ro" if mount.read_only else "")


def ulimit_argument(name: str, limit: int | tuple[int, int]) -> str:
    """The value of `--ulimit`: `memlock=-1` or `nofile=1024:4096`."""
    return f"{name}={limit}" if isinstance(limit, int) else f"{name}={limit[0]}:{limit[1]}"


def gpus_argument(selection: str) -> str:
    """The value of `--gpus`. The client splits it at commas, so a list of devices is quoted."""
    return f'"{selection}"' if "," in selection else selection


# Always present. Other options are present only if they are set, so that an option added in a later version does not
# change the digests of existing plans.
ALWAYS = (
    "name", "gpus", "ipc", "network", "shm_size", "ulimits", "cap_add", "security_opt", "devices", "ports",
    "mounts", "env", "secrets", "labels", "entrypoint", "restart",
)  # fmt: skip


def container_document(container: ContainerPlan) -> dict[str, Any]:
    """The container as an object of the plan's JSON."""
    values = asdict(container)
    values["name"] = container.name or None
    values["gpus"] = _gpus(container.gpus)
    values["mounts"] = [_mount(mount) for mount in container.mounts]
    if container.healthcheck is not None:
        values["healthcheck"] = {key: value for key, value in values["healthcheck"].items() if _is_set(value)}
    values["secrets"] = [
        {"name": secret.name} | ({"env": secret.env} if secret.env else {"file": secret.file})
        for secret in container.secrets
    ]
    always = {key: values.pop(key) for key in ALWAYS}
    return always | {key: value for key, value in values.items() if _is_set(value)}


def _is_set(value: Any) -> bool:
    """0 counts as set: `--stop-timeout 0` differs from the default of 10."""
    return bool(value) or (value is not False and value == 0)


def digest(plan: Plan) -> str:
    """The identity of a plan: sha256 of everything that is launched, without the names of lane and release."""
    content: dict[str, Any] = {
        "engine": plan.engine,
        "image": plan.image,
        "image_id": plan.image_id,
        "container": container_document(plan.container),
        "command": plan.command,
    }
    if plan.nodes > 1:
        content["nodes"] = plan.nodes
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _gpus(selection: GpuSelection) -> Any:
    """The selection as in a recipe: `all`, a count, `{"uuid": …}` or `{"index": [0]}`."""
    if selection is None or not selection.startswith("device="):
        return selection
    names = selection.removeprefix("device=").split(",")
    if all(name.isdecimal() for name in names):
        return {"index": [int(name) for name in names]}
    return {"uuid": names[0] if len(names) == 1 else names}


def _mount(mount: Mount) -> dict[str, Any]:
    key = "volume" if mount.is_volume else "source"
    value: dict[str, Any] = {key: mount.source, "target": mount.target, "read_only": mount.read_only}
    return value | ({"sha256": mount.sha256} if mount.sha256 else {})
