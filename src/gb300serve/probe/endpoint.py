"""The server of an engine: its address, its key, its health."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gb300serve.core.errors import ServiceError
from gb300serve.core.ports import Http, Response
from gb300serve.core.text import printable, truncate
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
        excerpt = truncate(text, _EXCERPT)
        body = f": {excerpt}" if excerpt else " and an empty body"
        key = "the server requires a key: set container.secrets.VLLM_API_KEY or engine.options.api_key in the recipe"
        hint = key if response.status == 401 else None
        super().__init__(f"{url} returned status {response.status}{body}", hint=hint)
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


def health(client: Http, endpoint: ServerEndpoint) -> int:
    """The status of `GET /health`. Raises UnreachableError."""
    return client.get(f"{endpoint.url}/health", endpoint.engine.health_timeout, endpoint.headers).status


def is_alive(status: int, endpoint: ServerEndpoint) -> bool:
    """Whether the status is that of a running engine; a server that requires its key returns 401."""
    return status == 200 or (status == 401 and endpoint.api_key is not None)


TIMEOUT = 5.0
# Prometheus text format 0.0.4: name, labels, value, optional timestamp. Names of vLLM carry a colon.
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?')
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One line of the text."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Times are seconds since 1970; usage is 0 to 1; None for a series that the server does not export."""

    process_start: float | None = None
    requests_running: float | None = None
    requests_waiting: float | None = None
    kv_cache_usage: float | None = None
    generation_tokens: float | None = None
    """All tokens since the server started."""


def metrics(client: Http, endpoint: ServerEndpoint) -> Metrics:
    """Raises UnreachableError or UnexpectedResponseError. No engine requires its key for this path."""
    url = f"{endpoint.url}/metrics"
    response = client.get(url, TIMEOUT)
    if response.status != 200:
        raise UnexpectedResponseError(url, response)
    found, engine = tuple(samples(response.text)), endpoint.engine
    return Metrics(
        process_start=_highest(found, "process_start_time_seconds"),
        requests_running=_total(found, engine.requests_running),
        requests_waiting=_total(found, engine.requests_waiting),
        kv_cache_usage=_highest(found, engine.kv_cache_usage),
        generation_tokens=_total(found, engine.generation_tokens),
    )


def samples(text: str) -> Iterator[MetricSample]:
    """The samples of a Prometheus text; all other lines are ignored."""
    for line in text.splitlines():
        match = _SAMPLE.fullmatch(line.strip())
        value = _number(match[3]) if match else None
        if match and value is not None:
            yield MetricSample(match[1], value, dict(_labels(match[2] or "")))


def _labels(text: str) -> Iterator[tuple[str, str]]:
    for match in _LABEL.finditer(text):
        yield match[1], _ESCAPED.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], match[2])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _total(found: tuple[MetricSample, ...], name: str) -> float | None:
    """The sum over the data-parallel engines, which are a label."""
    values = [sample.value for sample in found if sample.name == name]
    return sum(values) if values else None


def _highest(found: tuple[MetricSample, ...], name: str) -> float | None:
    return max((sample.value for sample in found if sample.name == name), default=None)
