"""The plan: everything a launch is, and nothing else. Pure data; the same inputs give the same bytes everywhere."""

from dataclasses import dataclass, field
from typing import Literal

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
    engine: Literal["vllm", "sglang"]
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
