"""Another container on the lane's port: which of the two is it that answers?

Started within a minute of each other, both pass for the one whose start the server tells (`probe.identity` allows for a
wrapper before the engine): then it is the one that started nearer to it.
"""

from dataclasses import replace

from gb300serve.lifecycle.conflicts import live, on_port
from gb300serve.lifecycle.ports import Container, ContainerBackend
from gb300serve.probe.endpoint import ServerEndpoint
from gb300serve.probe.readiness import Readiness


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
