"""What is on the machine, as far as a launch cares: read once, then decided on."""

from dataclasses import dataclass

from gb300serve.lifecycle.backend import Container, ContainerBackend, GpuHeld, Image, Listener, Listeners
from gb300serve.lifecycle.launch import host_ports
from gb300serve.plan.model import Plan


@dataclass(frozen=True, slots=True)
class Observed:
    """`neighbours` are running containers of another backend: they exclude each other only by port."""

    containers: tuple[Container, ...] = ()
    image: Image | None = None
    tagged: Image | None = None
    """What the reference without its digest means here; looked up only when `image` is None."""
    missing_sources: tuple[str, ...] = ()
    """Looked up last, where nothing else refuses."""
    neighbours: tuple[Container, ...] = ()
    listeners: tuple[Listener, ...] = ()
    gpu: GpuHeld | None = None
    """Looked up only where a container has the GPU."""

    def named(self, name: str) -> Container | None:
        """By its exact name; an engine's own lookup takes beginnings of ids too."""
        return next((container for container in self.containers if container.name == name), None)


def observe(
    backend: ContainerBackend,
    plan: Plan,
    listeners: Listeners | None = None,
    neighbours: tuple[ContainerBackend, ...] = (),
) -> Observed:
    """Without `listeners` (a daemon on another machine) sockets are not looked at. Raises BackendError."""
    image = backend.image(plan.image)
    reference, at, _ = plan.image.partition("@")
    heard = (listeners.on(port) for port in host_ports(plan)) if listeners else ()
    return Observed(
        containers=backend.containers(),
        image=image,
        tagged=backend.image(reference) if image is None and at else None,
        neighbours=tuple(
            container for other in neighbours for container in other.containers() if container.state == "running"
        ),
        listeners=tuple(listener for listener in heard if listener),
    )
