"""What a container's own command and environment say: its port, served names, key. Its recipe may have changed."""

from gb300serve.lifecycle.conflicts import engine_port
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.ports import Container
from gb300serve.lifecycle.words import values
from gb300serve.probe.endpoint import ServerEndpoint
from gb300serve.probe.engine import ENGINE_PROBES, EngineProbe


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
        return ENGINE_PROBES[launch.plan.engine]
    named = " ".join((container.image, *container.command[:3])).lower()
    return ENGINE_PROBES["sglang" if "sglang" in named else "vllm"]


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
