"""The plan: everything a launch is, and nothing else. Pure data; the same inputs give the same bytes everywhere."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from gb300serve.core.text import natural
from gb300serve.core.values import EngineName, Value

Network = str
GpuSelection = str | None
"""None, `all`, a count such as `2`, or `device=GPU-uuid[,GPU-uuid]`: what `docker run --gpus` takes."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A bind mount. `sha256` is one digest for a file, or name → digest for files below a directory."""

    source: str
    target: str
    read_only: bool = False
    sha256: str | dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Secret:
    """A variable of the container whose value is read on the client at launch: from `env` or from `file`."""

    name: str
    env: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """The container's options, by the names that `docker run` gives them."""

    name: str
    """Empty where the recipe gives none: docker then invents one."""
    gpus: GpuSelection = None
    ipc: str | None = None
    network: Network | None = None
    shm_size: str | None = None
    ulimits: dict[str, int | tuple[int, int]] = field(default_factory=dict)
    cap_add: tuple[str, ...] = ()
    security_opt: tuple[str, ...] = ()
    init: bool = False
    stop_timeout: int | None = None
    user: str | None = None
    workdir: str | None = None
    pid: str | None = None
    memory: str | None = None
    tmpfs: tuple[str, ...] = ()
    log_driver: str | None = None
    log_options: dict[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    ports: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    secrets: tuple[Secret, ...] = ()
    entrypoint: str | None = None
    restart: str = "no"
    """Applied after READY only: a bad flag under a restart policy becomes dozens of boots that hide the first error."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One launch. `command` is the engine's argv after the image; secret values appear as `${secret:NAME}`."""

    recipe: str
    """`lane/release`; `+set` is appended when `--set` changed it."""
    lane: str
    release: str
    engine: EngineName
    engine_version: str | None
    image: str
    """`repository[:tag][@digest]`, as printed."""
    image_id: str | None
    container: ContainerPlan
    command: tuple[str, ...]
    served_names: tuple[str, ...]
    """What `/v1/models` of a good boot lists; the first is the one to ask for."""
    port: int | None
    """The port that clients reach: the engine's own on the host network, else the published one, None without one."""
    model_path: str | None
    """Where the model lies on the host."""
    nodes: int = 1
    """Machines that hold the model together; plan.nodes says what each one is told."""
    ray: bool = False
    """They are held together by Ray, not by the engine's own processes."""
    launched_by: tuple[str, ...] = ()
    """The words of `command` before the options that name the program."""


_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgtp])?(i?b)?", re.IGNORECASE | re.ASCII)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


class Size(NamedTuple):
    """`number` as written; `unit` is a small letter, or empty for bytes."""

    number: str
    unit: str

    @property
    def bytes(self) -> int:
        return int(float(self.number) * 1024 ** _POWERS[self.unit])


def read_size(text: str) -> Size | None:
    """`16g`, `1.5 GiB`, `512`; None for what docker refuses."""
    found = _SIZE.fullmatch(text)
    return Size(found[1], (found[2] or "").lower()) if found else None


def published_port(network: str | None, ports: Iterable[str], inside: int) -> int | None:
    """The host's port that leads to port `inside`; on the host network that is the same one."""
    if network == "host":
        return inside
    for word in ports:
        host, container = split_port(word)
        if container == inside:
            return host
    return None


def split_port(word: str) -> tuple[int | None, int | None]:
    """Host and container port of one word; None where it has none (or a range, which is not followed)."""
    words = word.partition("/")[0].rsplit(":", 2)
    container = words[-1]
    host = words[-2] if len(words) > 1 else ""
    return natural(host), natural(container)


SECRET = re.compile(r"\$\{secret:([A-Za-z_][A-Za-z0-9_]*)\}")


def secret_word(name: str) -> str:
    """What stands in a plan for the value of a secret."""
    return f"${{secret:{name}}}"


def secret_name(value: Value) -> str | None:
    """NAME where an option's value is `{secret: NAME}`."""
    if isinstance(value, dict) and len(value) == 1:  # asking for a Mapping takes ten times as long, for each option
        name = value.get("secret")
        return name if isinstance(name, str) else None
    return None


def with_secret_words(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with `${secret:NAME}` for each `{secret: NAME}`, also where it is one of a list."""
    return {
        key: [_with_secret_word(item) for item in value] if isinstance(value, list) else _with_secret_word(value)
        for key, value in options.items()
    }


def _with_secret_word(value: Any) -> Any:
    name = secret_name(value)
    return value if name is None else secret_word(name)


def mount_word(mount: Mount) -> str:
    """`source:target[:ro]`, the value of `-v`."""
    return f"{mount.source}:{mount.target}" + (":ro" if mount.read_only else "")


def ulimit_word(name: str, limit: int | tuple[int, int]) -> str:
    """`memlock=-1` or `nofile=1024:4096`, the value of `--ulimit`."""
    return f"{name}={limit}" if isinstance(limit, int) else f"{name}={limit[0]}:{limit[1]}"


def gpus_word(selection: str) -> str:
    """The value of `--gpus`: a list of devices is one field of the client's comma-separated value, so it is quoted."""
    return f'"{selection}"' if "," in selection else selection


# Always present; the other options stand in the object only where they are set, so that an option that a later
# version learns leaves the digests of today's plans as they are.
ALWAYS = (
    "name", "gpus", "ipc", "network", "shm_size", "ulimits", "cap_add", "security_opt", "devices", "ports",
    "mounts", "env", "secrets", "labels", "entrypoint", "restart",
)  # fmt: skip


def container_document(container: ContainerPlan) -> dict[str, Any]:
    """`container` of the plan object."""
    values = asdict(container)
    values["name"] = container.name or None
    values["gpus"] = _gpus(container.gpus)
    values["mounts"] = [_mount(mount) for mount in container.mounts]
    values["secrets"] = [_secret(secret) for secret in container.secrets]
    always = {key: values.pop(key) for key in ALWAYS}
    return always | {key: value for key, value in values.items() if _is_set(value)}


def _is_set(value: Any) -> bool:
    """0 is a value: `--stop-timeout 0` is another launch than the engine's default of 10."""
    return bool(value) or (value is not False and value == 0)


def digest(plan: Plan) -> str:
    """sha256 of what is launched, without what it is called: the identity of a plan."""
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
    """As a recipe writes the choice: `all`, a count, `{"uuid": one or a list}`, `{"index": [0]}`."""
    if selection is None or not selection.startswith("device="):
        return selection
    names = selection.removeprefix("device=").split(",")
    if all(name.isdecimal() for name in names):
        return {"index": [int(name) for name in names]}
    return {"uuid": names[0] if len(names) == 1 else names}


def _mount(mount: Mount) -> dict[str, Any]:
    value: dict[str, Any] = {"source": mount.source, "target": mount.target, "read_only": mount.read_only}
    return value | ({"sha256": mount.sha256} if mount.sha256 else {})


def _secret(secret: Secret) -> dict[str, Any]:
    return {"name": secret.name} | ({"env": secret.env} if secret.env else {"file": secret.file})
