"""Server identity: is the server that answers on the port the engine in our container?"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gb300serve.boot.events import BootBegan, Event, Receipt, ReceiptValue, StartupComplete
from gb300serve.core.errors import BackendError
from gb300serve.engines.engine import EngineProbe
from gb300serve.engines.logs import boot_machine
from gb300serve.engines.registry import ENGINES, engine_in
from gb300serve.engines.vllm.engine import VLLM
from gb300serve.lifecycle.backend import Container, ContainerBackend, Listener
from gb300serve.lifecycle.launch import Launch, option_values
from gb300serve.lifecycle.reconcile import containers_on_port, engine_port, is_live
from gb300serve.lifecycle.tools import Tools
from gb300serve.probe.endpoint import ServerEndpoint
from gb300serve.probe.readiness import Readiness

_SERVER_INFOS = tuple(info for engine in ENGINES.values() if (info := engine.probe.server_info))
_RECEIPTS = frozenset(name for info in _SERVER_INFOS for name in info.receipts)


@dataclass(slots=True)
class BootIdentity:
    """Facts of a boot log that identify its server; `figures` by the engine's own names."""

    figures: dict[str, ReceiptValue] = field(default_factory=dict)
    served: bool = False
    """Whether its log shows that it serves."""

    def take(self, event: Event) -> None:
        """Take in an event; a new boot starts over."""
        if isinstance(event, BootBegan):
            self.figures.clear()
            self.served = False
        elif isinstance(event, StartupComplete):
            self.served = True
        elif isinstance(event, Receipt) and event.name in _RECEIPTS:
            self.figures.update(event.values)

    def take_line(self, text: str) -> None:
        """Take in a log line, after its events."""
        for info in _SERVER_INFOS:
            self.figures.update(info.figures_in(text))


def boot_identity(container: Container, endpoint: ServerEndpoint, backend: ContainerBackend) -> BootIdentity:
    """Read the log of a booted container up to READY, if identifying its engine needs the log."""
    identity = BootIdentity()
    if endpoint.engine.server_info is None:
        return identity
    machine = boot_machine()
    for line in backend.log(container.id):
        for event in machine.feed(line.text, line.elapsed):
            identity.take(event)
        identity.take_line(line.text)
        if identity.served:
            break
    return identity


def is_plausible(answer: Readiness, endpoint: ServerEndpoint, boot: BootIdentity) -> bool:
    """Whether our container may have answered: if the server does not identify itself, its log must show serving."""
    return answer.identity != "unknown" or endpoint.engine.server_info is None or boot.served


def exclude_other_servers(answer: Readiness, container: Container, endpoint: ServerEndpoint, tools: Tools) -> Readiness:
    """The answer, unless somebody else is the likelier sender: another container on the port, or the process that
    listens there. Raises BackendError.
    """
    if answer.state != "ready":
        return answer
    sender = _rival(answer, container, endpoint, tools.backend)
    # A published port may be forwarded by any program (ssh, a virtual machine's proxy); an engine on the host's network
    # and a simulated one listen themselves.
    if sender is None and (container.host_network or tools.backend.kind == "sim"):
        listener = listener_instead(container, endpoint, tools)
        sender = f"{listener.process or 'another program'}, which listens there," if listener else None
    if sender is None:
        return answer
    why = f"{sender} answers on this port, not {container.name}"
    return replace(answer, state="other-server", why=why, identity="other")


def _rival(answer: Readiness, container: Container, endpoint: ServerEndpoint, backend: ContainerBackend) -> str | None:
    """The container on the port that started closer to the start that the server reports than ours."""
    started = answer.metrics.process_start if answer.metrics else None
    port = _port(endpoint)
    if started is None or port is None:
        return None
    others = (other for other in backend.containers() if is_live(other) and other.id != container.id)
    closer = (
        f"the container {other.name}"
        for other in containers_on_port(port, others)
        if abs(other.began - started) < abs(container.began - started)
    )
    return next(closer, None)


def _port(endpoint: ServerEndpoint) -> int | None:
    port = endpoint.url.rpartition(":")[2]
    return int(port) if port.isdecimal() else None


def listener_instead(container: Container, endpoint: ServerEndpoint, tools: Tools) -> Listener | None:
    """The process that listens on the endpoint in the engine's place; None if that cannot be seen from here."""
    port = _port(endpoint)
    if tools.listeners is None or port is None:
        return None
    try:
        own = tools.backend.processes(container.id)
    except BackendError:
        return None  # it has just ended; the log shows that
    address = endpoint.url.partition("://")[2].rpartition(":")[0].strip("[]")
    return foreign_listener(tools.listeners.each_on(port), own, address) if own else None


# Programs that forward a published port into its container; they are not processes of the container.
_FORWARDERS = ("docker-proxy", "rootlessport", "rootlesskit", "slirp4netns", "pasta", "conmon", "com.docker", "vpnkit")
_EVERY = ("0.0.0.0", "::", "*")  # noqa: S104 - what sockets are compared with; nothing is bound


def foreign_listener(listeners: Iterable[Listener], own: frozenset[int], address: str) -> Listener | None:
    """The listener that a client of `address` reaches, if it is certainly not ours; `own`: the container's processes.

    The kernel prefers a socket on the exact address over one on every address. None if the owner is not visible.
    """
    sockets = tuple(listeners)
    exact = [socket for socket in sockets if socket.address == address]
    reached = exact or [socket for socket in sockets if socket.address in _EVERY]
    foreign = (socket for socket in reached if socket.pid is not None and socket.pid not in own)
    return next((socket for socket in foreign if not (socket.process or "").startswith(_FORWARDERS)), None)


def endpoint_of(container: Container, launch: Launch | None) -> ServerEndpoint | None:
    """None if no host port leads to its engine. `launch` supplies the address, and a port the command lacks."""
    port = engine_port(container) if container.host_network else next(iter(container.published), None)
    address = launch.endpoint.url.rpartition(":")[0] if launch else "http://127.0.0.1"
    if port is None and launch is not None:
        port = launch.plan.port
    if port is None:
        return None
    engine = engine_of(container, launch)
    keys = (*option_values(container.command, "--api-key"), container.env.get(engine.key_variable or ""))
    return ServerEndpoint(f"{address}:{port}", next(filter(None, keys), None), engine)


def engine_of(container: Container, launch: Launch | None) -> EngineProbe:
    """The engine of its recipe, else the one that its image and command name."""
    if launch is not None:
        return ENGINES[launch.plan.engine].probe
    return (engine_in((container.image, *container.command[:3])) or VLLM).probe


def served_names(container: Container, launch: Launch | None) -> tuple[str, ...]:
    """The names that `/v1/models` should list; by default the engine uses the model's path."""
    given = option_values(container.command, "--served-model-name")
    if given:
        return given
    if launch is not None:
        return launch.plan.served_names
    named = (option_values(container.command, flag) for flag in ("--model", "--model-path"))
    return next(filter(None, named), container.command)[:1]
