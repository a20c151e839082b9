"""`GET /health`: 200 while the engine lives, 503 once it is dead and the server has not ended yet."""

from gb300serve.core.http import Http
from gb300serve.probe.endpoint import Endpoint

TIMEOUT = 5.0


def health(client: Http, endpoint: Endpoint) -> int:
    """The status of the answer. Raises UnreachableError."""
    return client.get(f"{endpoint.url}/health", TIMEOUT, endpoint.headers).status
