"""Who holds what a launch needs: the GPU and the ports of the host."""

from collections.abc import Iterable, Iterator

from gb300serve.core.default_ports import DEFAULT_PORTS
from gb300serve.lifecycle.launch import Launch, host_ports
from gb300serve.lifecycle.observe import Observed
from gb300serve.lifecycle.ports import Container
from gb300serve.lifecycle.refusals import GpuBusyError, PortHeldError, PortListenedError
from gb300serve.lifecycle.words import values

_LIVE = frozenset({"running", "paused", "restarting"})
_GPU_LABEL = "gpu-lane"
"""How one owner marks the container that holds the GPU, whatever options it was started with."""
_DEVICES = "device="


def live(container: Container) -> bool:
    """It holds memory, GPU and ports: a paused one too."""
    return container.state in _LIVE


def going(container: Container) -> bool:
    """It is being removed, or could not be removed whole: nothing can be done with it any more."""
    return container.state in {"removing", "dead"}


def refuse_conflicts(launch: Launch, observed: Observed, leaving: frozenset[str]) -> None:
    """Raise for the first holder of the GPU or a port; `leaving` are the ids that the launch itself uses or stops."""
    staying = tuple(each for each in observed.containers if live(each) and each.id not in leaving)
    for holder in on_gpu(launch.plan.container.gpus, staying):
        raise GpuBusyError(launch, holder, observed.gpu)
    stopping = tuple(each for each in observed.containers if live(each) and each.id in leaving)
    for port in host_ports(launch.plan):
        for holder in on_port(port, (*staying, *observed.neighbours)):
            raise PortHeldError(launch, port, holder)
        heard = next((each for each in observed.listeners if each.port == port), None)
        if heard and not any(on_port(port, stopping)):
            raise PortListenedError(heard)


def on_gpu(gpus: str | None, containers: Iterable[Container]) -> Iterator[Container]:
    """Those whose GPUs may be among `gpus`; nobody when none are asked for."""
    for container in containers:
        held = container.gpus or ("all" if container.labels.get(_GPU_LABEL) == "1" else None)
        if gpus and held and _overlap(gpus, held):
            yield container


def strangers_on_gpu(gpus: str | None, containers: Iterable[Container]) -> Iterator[Container]:
    """Live ones that are not ours and whose GPUs may be among `gpus`."""
    return on_gpu(gpus, (each for each in containers if live(each) and not each.ours))


def on_port(port: int, containers: Iterable[Container]) -> Iterator[Container]:
    """Those that publish the port, or whose engine binds it on the host's network."""
    for container in containers:
        if port in container.published or (container.host_network and engine_port(container) == port):
            yield container


def engine_port(container: Container) -> int | None:
    """The port in its command, else its engine's own; None for what is no engine."""
    for text in reversed(values(container.command, "--port")):  # the last one wins
        if text.isdecimal():
            return int(text)
    named = " ".join((container.image, *container.command[:3])).lower()
    return next((port for engine, port in DEFAULT_PORTS.items() if engine in named), None)


def _overlap(one: str, other: str) -> bool:
    """Only two lists of devices can be told apart: a count or `all` may mean any GPU."""
    if one.startswith(_DEVICES) and other.startswith(_DEVICES):
        return bool(_devices(one) & _devices(other))
    return True


def _devices(gpus: str) -> set[str]:
    return set(gpus.removeprefix(_DEVICES).split(","))
