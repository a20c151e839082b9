"""The state of the machine that a launch depends on, read once."""

from dataclasses import dataclass

from gb300serve.lifecycle.backend import Container, ContainerBackend, GpuHeld, Image, Listener, Listeners
from gb300serve.lifecycle.launch import host_ports
from gb300serve.plan.model import Plan


@dataclass(frozen=True, slots=True)
class Observed:
    """`neighbours`: running containers of another backend, which conflict only by port."""

    containers: tuple[Container, ...] = ()
    image: Image | None = None
    tagged: Image | None = None
    """The image of the reference without its digest; looked up only when `image` is None."""
    missing_sources: tuple[str, ...] = ()
    """Looked up last, if nothing else refuses."""
    neighbours: tuple[Container, ...] = ()
    listeners: tuple[Listener, ...] = ()
    gpu: GpuHeld | None = None
    """Looked up only if a foreign container uses the GPU."""

    def named(self, name: str) -> Container | None:
        """By exact name; Docker's own lookup also accepts prefixes of ids."""
        return next((container for container in self.containers if container.name == name), None)


def observe(
    backend: ContainerBackend,
    plan: Plan,
    listeners: Listeners | None = None,
    neighbours: tuple[ContainerBackend, ...] = (),
) -> Observed:
    """Without `listeners` (Docker on another machine) sockets are not checked. Raises BackendError."""
    image = backend.image(plan.image)
    reference, at, _ = plan.image.partition("@")
    found = (listeners.on(port) for port in host_ports(plan)) if listeners else ()
    return Observed(
        containers=backend.containers(),
        image=image,
        tagged=backend.image(reference) if image is None and at else None,
        neighbours=tuple(
            container for other in neighbours for container in other.containers() if container.state == "running"
        ),
        listeners=tuple(listener for listener in found if listener),
    )
