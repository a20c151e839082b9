"""The server of an engine: its address, its key, its health."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gb300serve.core.errors import ServiceError
from gb300serve.core.ports import Http, Response
from gb300serve.core.text import printable
from gb300serve.engines.engine import EngineProbe
from gb300serve.engines.vllm.engine import VLLM


@dataclass(frozen=True, slots=True)
class ServerEndpoint:
    """`url` is scheme, address and port, without a path.

    The key guards only `/v1/*` (vLLM 0.29 to 0.33), or all but health and metrics (SGLang 0.5.20 to 0.5.23).
    """

    url: str
    api_key: str | None = field(default=None, repr=False)
    engine: EngineProbe = VLLM.probe

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}


_EXCERPT = 200


class UnexpectedResponseError(ServiceError):
    """The status or the body of a response is not as the engine's API defines it."""

    def __init__(self, url: str, response: Response) -> None:
        text = " ".join(printable(response.text).split())
        excerpt = text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"
        body = f": {excerpt}" if excerpt else " and an empty body"
        super().__init__(f"{url} returned status {response.status}{body}", hint=_hint(response.status))
        self.status = response.status


def json_object(url: str, response: Response) -> Mapping[str, Any]:
    """The JSON object in a response with status 200. Raises UnexpectedResponseError for any other response."""
    if response.status != 200:
        raise UnexpectedResponseError(url, response)
    try:
        body = json.loads(response.text)
    except ValueError:
        raise UnexpectedResponseError(url, response) from None
    if not isinstance(body, dict):
        raise UnexpectedResponseError(url, response)
    return body


def _hint(status: int) -> str | None:
    if status == 401:
        return "the server requires a key: set container.secrets.VLLM_API_KEY or engine.options.api_key in the recipe"
    return None


def health(client: Http, endpoint: ServerEndpoint) -> int:
    """The status of `GET /health`. Raises UnreachableError."""
    return client.get(f"{endpoint.url}/health", endpoint.engine.health_timeout, endpoint.headers).status


def is_alive(status: int, endpoint: ServerEndpoint) -> bool:
    """Whether the status is that of a running engine; a server that requires its key returns 401."""
    return status == 200 or (status == 401 and endpoint.api_key is not None)
