"""What a container's own command and environment say: its port, served names, key. Its recipe may have changed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gb300serve.boot.events import BootBegan, Event, Receipt, ReceiptValue, StartupComplete
from gb300serve.engines.engine import EngineProbe
from gb300serve.engines.logs import boot_machine
from gb300serve.engines.registry import ENGINES, engine_in
from gb300serve.engines.vllm.engine import VLLM
from gb300serve.lifecycle.backend import Container, ContainerBackend, Listener
from gb300serve.lifecycle.launch import Launch, values
from gb300serve.lifecycle.reconcile import engine_port, live, on_port
from gb300serve.probe.endpoint import ServerEndpoint
from gb300serve.probe.readiness import Readiness

_SERVER_INFOS = tuple(info for engine in ENGINES.values() if (info := engine.probe.server_info))
_RECEIPTS = frozenset(name for info in _SERVER_INFOS for name in info.receipts)


@dataclass(slots=True)
class Birth:
    """Gathered from the events of a boot; `figures` by the names that the engine gives them."""

    _figures: dict[str, ReceiptValue] = field(default_factory=dict)
    served: bool = False
    """Its log says that it serves."""

    @property
    def figures(self) -> Mapping[str, ReceiptValue]:
        return self._figures

    def take(self, event: Event) -> None:
        """Another boot begins anew."""
        if isinstance(event, BootBegan):
            self._figures.clear()
            self.served = False
        elif isinstance(event, StartupComplete):
            self.served = True
        elif isinstance(event, Receipt) and event.name in _RECEIPTS:
            self._figures.update(event.values)

    def hear(self, text: str) -> None:
        """A line, after its events."""
        for info in _SERVER_INFOS:
            self._figures.update(info.figures_in(text))


def birth(container: Container, endpoint: ServerEndpoint, backend: ContainerBackend) -> Birth:
    """Of a container that has booted: its log is read up to READY, and only where the engine's answers need it."""
    found = Birth()
    if endpoint.engine.server_info is None:
        return found
    machine = boot_machine()
    for line in backend.log(container.id):
        for event in machine.feed(line.text, line.elapsed):
            found.take(event)
        found.hear(line.text)
        if found.served:
            break
    return found


def is_believed(answer: Readiness, endpoint: ServerEndpoint, told: Birth) -> bool:
    """Whether an answer may be that of our container: where the server tells nothing of itself, the log must say so."""
    return answer.identity != "unknown" or endpoint.engine.server_info is None or told.served


def against_rivals(
    answer: Readiness, container: Container, endpoint: ServerEndpoint, backend: ContainerBackend
) -> Readiness:
    """The answer, unless it is rather that of another container. Raises BackendError."""
    born = answer.metrics.process_start if answer.metrics else None
    port = endpoint.url.rpartition(":")[2]
    if answer.state != "ready" or born is None or not port.isdecimal():
        return answer
    others = (each for each in backend.containers() if live(each) and each.id != container.id)
    for rival in on_port(int(port), others):
        if abs(_start(rival) - born) < abs(_start(container) - born):
            why = f"the container {rival.name} answers on this port, not {container.name}"
            return replace(answer, state="other-server", why=why, identity="other")
    return answer


def _start(container: Container) -> float:
    return container.created_at if container.started_at is None else container.started_at


# What forwards a published port into its container: their processes are not the container's.
_FORWARDERS = ("docker-proxy", "rootlessport", "rootlesskit", "slirp4netns", "pasta", "conmon", "com.docker", "vpnkit")
_EVERY = ("0.0.0.0", "::", "*")  # noqa: S104 - what sockets are compared with; nothing is bound


def intruder(listeners: Iterable[Listener], own: frozenset[int], address: str) -> Listener | None:
    """The one that a client of `address` reaches, where it is surely none of ours; `own` are the container's processes.

    The kernel gives a connection to the socket of exactly its address before one of every address. None where the
    owner of the socket may not be seen.
    """
    every = tuple(listeners)
    exact = [each for each in every if each.address == address]
    reached = exact or [each for each in every if each.address in _EVERY]
    foreign = (each for each in reached if each.pid is not None and each.pid not in own)
    return next((each for each in foreign if not (each.process or "").startswith(_FORWARDERS)), None)


def endpoint_of(container: Container, launch: Launch | None) -> ServerEndpoint | None:
    """None where no port of the host leads to its engine. `launch` gives the address, and what the command lacks."""
    port = engine_port(container) if container.host_network else next(iter(container.published), None)
    address = launch.endpoint.url.rpartition(":")[0] if launch else "http://127.0.0.1"
    if port is None and launch is not None:
        port = launch.plan.port
    if port is None:
        return None
    engine = engine_of(container, launch)
    key = next(iter(values(container.command, "--api-key")), None) or container.env.get(engine.key_variable or "")
    return ServerEndpoint(f"{address}:{port}", key, engine)


def engine_of(container: Container, launch: Launch | None) -> EngineProbe:
    """Its recipe's, else what its image and its first words name."""
    if launch is not None:
        return ENGINES[launch.plan.engine].probe
    return (engine_in((container.image, *container.command[:3])) or VLLM).probe


def served_names(container: Container, launch: Launch | None) -> tuple[str, ...]:
    """What `/v1/models` should list; without the option the engine serves under the model's path."""
    given = values(container.command, "--served-model-name")
    if given:
        return given
    if launch is not None:
        return launch.plan.served_names
    return (
        values(container.command, "--model")[:1]
        or values(container.command, "--model-path")[:1]
        or container.command[:1]
    )
