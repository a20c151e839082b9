"""What a place that runs containers must be able to do: the Docker Engine and the simulated Station both do it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from gb300serve.plan.model import Plan

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


class ContainerBackend(Protocol):
    """Every call may raise BackendError (exit 7)."""

    @property
    def kind(self) -> Literal["docker", "sim"]: ...

    def check(self) -> None:
        """Raise unless the engine answers; the message says what it said."""

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


@dataclass(frozen=True, slots=True)
class Listener:
    """A socket that listens on this machine. `process` names its owner (`python3, process 4711`) where known."""

    port: int
    address: str
    process: str | None = None
    pid: int | None = None


class Listeners(Protocol):
    """The listening sockets of the machine that runs the containers, on any address: the engine binds 0.0.0.0."""

    def on(self, port: int) -> Listener | None: ...

    def each_on(self, port: int) -> tuple[Listener, ...]:
        """All of them: on different addresses several may listen on one port."""
