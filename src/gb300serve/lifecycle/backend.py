"""Containers, the port of the backends that run them, and what they hold: sockets, mounts, GPU memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, Self

from gb300serve.core.errors import BackendError
from gb300serve.core.ports import Clock
from gb300serve.core.text import gib
from gb300serve.core.values import Missing
from gb300serve.host.facts import GpuHolder
from gb300serve.host.nvidia import GpuState
from gb300serve.plan.model import ContainerPlan, Plan, split_host
from gb300serve.preflight.subject import principal

ContainerState = Literal["created", "running", "paused", "restarting", "removing", "exited", "dead"]

LABEL_LANE = "gb300serve.lane"
LABEL_RELEASE = "gb300serve.release"
LABEL_PLAN = "gb300serve.plan"


@dataclass(frozen=True, slots=True)
class Container:
    """A container as its engine reports it. Times are seconds since 1970, UTC."""

    id: str
    name: str
    image: str
    """The reference it was created from."""
    image_id: str
    state: ContainerState
    labels: Mapping[str, str]
    command: tuple[str, ...]
    created_at: float
    started_at: float | None = None
    finished_at: float | None = None
    exit_code: int | None = None
    oom_killed: bool = False
    error: str = ""
    """What the engine said when it could not start it."""
    restart_count: int = 0
    restart_policy: str = "no"
    host_network: bool = False
    gpus: str | None = None
    """As in the plan; None where it asked for none."""
    env: Mapping[str, str] = field(default_factory=dict)
    published: tuple[int, ...] = ()
    """Ports of the host that lead into it; empty with the host's network."""
    stop_timeout: int | None = None
    """Seconds to wait after the stop signal, where it was created with them."""
    options: Mapping[str, str] | None = None
    """Mounts, limits, capabilities, network, IPC, entrypoint: texts by field (lifecycle.options). None: not told."""

    @property
    def ours(self) -> bool:
        return LABEL_PLAN in self.labels

    @property
    def began(self) -> float:
        """Its last start, else its creation."""
        return self.created_at if self.started_at is None else self.started_at


@dataclass(frozen=True, slots=True)
class Image:
    """An image on the machine that runs the containers."""

    id: str
    digests: tuple[str, ...]
    """`repository@sha256:…`, empty for images that were never pulled or pushed."""
    architecture: str
    entrypoint: tuple[str, ...] = ()


class LogLine(NamedTuple):  # a dataclass takes four times as long to make, a thousand times a second
    """A line of a container's log, split at line feeds and at carriage returns.

    `elapsed` is seconds since this start of the container, in the time that the engine lives in: on the simulated
    Station it runs faster than the wall clock.
    """

    text: str
    elapsed: float
    stream: Literal["stdout", "stderr"] = "stdout"


@dataclass(frozen=True, slots=True)
class Vitals:
    """`cpu_seconds` of the whole container since its start, in its own time; `gpu` 0 to 1; None: unknown."""

    cpu_seconds: float | None = None
    gpu: float | None = None
    restarts: int = 0


class Bars(Protocol):
    """Progress bars as they are drawn, before the log has them; a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: Any) -> None: ...

    def fresh(self) -> tuple[str, ...]:
        """The newest state of each bar that moved since the last call; never waits."""


class ContainerBackend(Protocol):
    """Every call may raise BackendError (exit 7)."""

    @property
    def kind(self) -> Literal["docker", "sim"]: ...

    def check(self) -> None:
        """Raise BackendError with the engine's own words unless it answers."""

    def find(self, name: str) -> Container | None:
        """By name or id, running or not."""

    def containers(self) -> tuple[Container, ...]:
        """All of them, running or not, ours or not."""

    def image(self, reference: str) -> Image | None:
        """The image on the machine; never pulls."""

    def missing_sources(self, plan: Plan) -> tuple[str, ...]:
        """Mount sources that do not exist on the machine that runs the containers."""

    def create(self, plan: Plan, labels: Mapping[str, str], secrets: Mapping[str, str]) -> str:
        """Create, do not start; `secrets` are values by name. Returns the id."""

    def start(self, container: str) -> None: ...

    def stop(self, container: str, timeout: float) -> None:
        """Ask it to end, wait `timeout` seconds, then kill it."""

    def rename(self, container: str, name: str) -> None: ...

    def remove(self, container: str) -> None:
        """Remove a container that does not run."""

    def set_restart(self, container: str, policy: str) -> None: ...

    def elapsed(self, container: str) -> float:
        """Seconds since the container's last start, in its engine's time (see LogLine)."""

    def follow(self, container: str, every: float) -> Iterator[LogLine | None]:
        """The log since the container's last start, then live; None after each `every` seconds (wall clock) of silence.

        Ends when the container has ended and everything that it wrote was delivered.
        """

    def log(self, container: str, tail: int | None = None) -> Iterator[LogLine]:
        """The log since the container's last start, as it stands; the last `tail` lines of it."""

    def vitals(self, container: str) -> Vitals | None:
        """Signs of life of a running container; None where the backend has none."""

    def processes(self, container: str) -> frozenset[int] | None:
        """Process ids of a running container, as its host numbers them; None where these are unknown."""

    def shared_memory(self, container: str) -> int | Missing:
        """Bytes of shared memory (RssShmem) that its processes hold: the pinned host memory of an engine."""

    def bars(self, container: str) -> Bars | None:
        """Live progress bars; None where the log itself shows every state."""

    def stack_command(self, container: str) -> str | None:
        """A shell command that prints the engine's stack."""

    def stacks(self, container: str) -> str | None:
        """The output of py-spy for every process; None where py-spy cannot run."""

    def file_sha256(self, container: str, path: str) -> str | None:
        """64 hexadecimal digits of a file in the container; None if the file does not exist."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A socket that listens on this machine. `process` names its owner (`python3, process 4711`) where known."""

    port: int
    address: str
    process: str | None = None
    pid: int | None = None


class Listeners(Protocol):
    """The listening sockets of the machine that runs the containers, on any address: the engine binds 0.0.0.0."""

    def each_on(self, port: int) -> tuple[Listener, ...]:
        """All of them: on different addresses several may listen on one port."""


# Seconds. One that is upgraded is away for some ten; after a minute it is not coming back by itself.
PATIENCE = 60.0


class Absence:
    """A context manager that lets a question fail, again and again for PATIENCE; then its BackendError is raised."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: float | None = None

    def __enter__(self) -> None:
        return

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, BackendError):
            self._since = None
            return False
        now = self._clock.now()
        self._since = now if self._since is None else self._since
        return now - self._since <= PATIENCE


NOTHING = "nothing"


def wanted_options(plan: ContainerPlan) -> dict[str, str]:
    """By field, as `adapters.docker_inspect` reads them from a container of this plan."""
    found = {"network": network(plan.network or ""), "ipc": ipc(plan.ipc or ""), "cap_add": capabilities(plan.cap_add)}
    found |= {f"mounts.{target(mount.target)}": mount_text(mount.source, mount.read_only) for mount in plan.mounts}
    for name, limit in plan.ulimits.items():
        soft, hard = limit if isinstance(limit, tuple) else (limit, limit)
        found[f"ulimits.{name}"] = limit_text(soft, hard)
    found["privileged"] = switch(on=plan.privileged)
    found["group_add"] = listed(plan.group_add)
    found["cpuset_cpus"] = plan.cpuset_cpus or NOTHING
    found["add_host"] = listed(tuple(":".join(split_host(host)) for host in plan.add_host))
    return found if plan.entrypoint is None else {**found, "entrypoint": plan.entrypoint}


def differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Field, what is wanted, what is there. A daemon adds limits of its own, and an image its entrypoint."""
    for name, text in wanted.items():
        if found.get(name, NOTHING) != text:
            yield name, text, found.get(name, NOTHING)
    for name, text in found.items():
        if name.startswith("mounts.") and name not in wanted:
            yield name, NOTHING, text


def network(mode: str) -> str:
    """Docker calls its default network by two names."""
    return "bridge" if mode in {"", "default"} else mode


def ipc(mode: str) -> str:
    """`shareable` and `private` are defaults of a daemon: nobody asked for them."""
    return "private" if mode in {"", "shareable"} else mode


def capabilities(names: tuple[str, ...]) -> str:
    """Docker takes and shows them with and without CAP_."""
    return " ".join(sorted({name.upper().removeprefix("CAP_") for name in names})) or NOTHING


def switch(*, on: bool) -> str:
    """A switch that is off counts as not set."""
    return "true" if on else NOTHING


def listed(values: tuple[str, ...]) -> str:
    """Values whose order has no meaning."""
    return " ".join(sorted(values)) or NOTHING


def target(path: str) -> str:
    """Docker cleans paths."""
    return path.rstrip("/") or "/"


def mount_text(source: str, read_only: bool) -> str:  # noqa: FBT001 - named where it matters, and short
    """`/models/x, read-only`."""
    return f"{target(source)}{', read-only' if read_only else ''}"


def limit_text(soft: int, hard: int) -> str:
    """`-1`, or `soft:hard`."""
    return str(soft) if soft == hard else f"{soft}:{hard}"


@dataclass(frozen=True, slots=True)
class GpuHeld:
    """Bytes by container id, and those in use of the largest GPU. `missing` states why nothing is known."""

    containers: Mapping[str, int] = field(default_factory=dict)
    in_use: int | None = None
    missing: str | None = None

    def sentence(self, container: str) -> str:
        """What is known of one container, by id: a clause."""
        if container in self.containers:
            return f"it holds {gib(self.containers[container])} of the GPU's memory"
        unknown = "how much of the GPU's memory it holds was not checked"
        if self.missing is not None:
            return f"{unknown} ({self.missing})"
        if self.in_use is None:
            return f"{unknown} (the driver does not say)"
        return f"{gib(self.in_use)} of the GPU's memory are in use, and which process is its own cannot be told"


class GpuMemory(Protocol):
    """The GPU of the machine that runs the containers. Asking takes a process or two of nvidia-smi."""

    def held(self) -> GpuHeld: ...


def told_by(gpus: tuple[GpuState, ...] | Missing, processes: tuple[GpuHolder, ...] | Missing) -> GpuHeld:
    """From the host's facts."""
    large = () if isinstance(gpus, Missing) else principal(gpus)
    in_use = large[0].used if large else None
    if isinstance(processes, Missing):
        return GpuHeld(in_use=in_use, missing=None if in_use is not None else processes.why)
    found: dict[str, int] = {}
    for holder in processes:
        if holder.container is not None and holder.process.used is not None:
            found[holder.container] = found.get(holder.container, 0) + holder.process.used
    return GpuHeld(found, in_use, gpus.why if isinstance(gpus, Missing) and not found else None)
