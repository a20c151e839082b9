"""`GET /health`: 200 while the engine lives, 503 once it is dead and the server has not ended yet."""

from gb300serve.core.http import Http
from gb300serve.probe.endpoint import ServerEndpoint


def health(client: Http, endpoint: ServerEndpoint) -> int:
    """The status of the answer. Raises UnreachableError."""
    return client.get(f"{endpoint.url}/health", endpoint.engine.health_timeout, endpoint.headers).status


def alive(status: int, endpoint: ServerEndpoint) -> bool:
    """Whether this status is that of a living engine: a server that wants its key answers 401, and lives."""
    return status == 200 or (status == 401 and endpoint.api_key is not None)
