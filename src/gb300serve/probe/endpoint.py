"""Where a server is reached, with which key, and what it is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gb300serve.core.errors import ServiceError
from gb300serve.core.ports import Http, Response
from gb300serve.core.text import printable


@dataclass(frozen=True, slots=True)
class EngineProbe:
    """Names of series in the text of /metrics; `health_timeout` is seconds that /health may take.

    `server_info` is the path that tells the figures of the server's own start (None: `process_start_time_seconds` of
    /metrics tells when it started). `key_variable` is the environment's name for the key of `/v1`.
    """

    name: str
    requests_running: str
    requests_waiting: str
    kv_cache_usage: str
    health_timeout: float
    server_info: str | None = None
    key_variable: str | None = None


VLLM = EngineProbe(
    name="vllm",
    requests_running="vllm:num_requests_running",
    requests_waiting="vllm:num_requests_waiting",
    kv_cache_usage="vllm:kv_cache_usage_perc",
    health_timeout=5.0,
    key_variable="VLLM_API_KEY",
)

# sglang.srt, 0.5.20 and 0.5.23: observability/metrics_collector.py (a multiprocess registry, which has no start of a
# process), entrypoints/http_server.py: /health lets the model make a token, and waits 20 s for it at most.
SGLANG = EngineProbe(
    name="sglang",
    requests_running="sglang:num_running_reqs",
    requests_waiting="sglang:num_queue_reqs",
    kv_cache_usage="sglang:token_usage",
    health_timeout=25.0,
    server_info="/server_info",
)

ENGINE_PROBES: Mapping[str, EngineProbe] = {"vllm": VLLM, "sglang": SGLANG}


@dataclass(frozen=True, slots=True)
class ServerEndpoint:
    """`url` is scheme, address and port, without a path.

    The key guards `/v1/*` only (vLLM 0.29 to 0.33), or all but health and metrics (SGLang 0.5.20 to 0.5.23).
    """

    url: str
    api_key: str | None = field(default=None, repr=False)
    engine: EngineProbe = VLLM

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}


_EXCERPT = 200


class UnexpectedAnswerError(ServiceError):
    """An answer whose status or form is not what the engine's API promises."""

    def __init__(self, url: str, response: Response) -> None:
        text = " ".join(printable(response.text).split())
        excerpt = text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"
        said = f": {excerpt}" if excerpt else " and nothing else"
        super().__init__(f"{url} answers with status {response.status}{said}", hint=_hint(response.status))
        self.status = response.status


def json_object(url: str, response: Response) -> Mapping[str, Any]:
    """The JSON object of an answer with status 200; raises UnexpectedAnswerError for any other answer."""
    if response.status != 200:
        raise UnexpectedAnswerError(url, response)
    try:
        body = json.loads(response.text)
    except ValueError:
        raise UnexpectedAnswerError(url, response) from None
    if not isinstance(body, dict):
        raise UnexpectedAnswerError(url, response)
    return body


def _hint(status: int) -> str | None:
    if status == 401:
        return "the server wants a key: say it in the recipe, container.secrets.VLLM_API_KEY or engine.options.api_key"
    return None


def health(client: Http, endpoint: ServerEndpoint) -> int:
    """The status of the answer. Raises UnreachableError."""
    return client.get(f"{endpoint.url}/health", endpoint.engine.health_timeout, endpoint.headers).status


def alive(status: int, endpoint: ServerEndpoint) -> bool:
    """Whether this status is that of a living engine: a server that wants its key answers 401, and lives."""
    return status == 200 or (status == 401 and endpoint.api_key is not None)
