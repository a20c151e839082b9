"""HTTP to servers on this machine. The only importer of httpx."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from types import MappingProxyType

import httpx

from gb300serve.core.ports import Response, UnreachableError
from gb300serve.core.values import Value, compact_json

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class HttpClient:
    """Implements `core.ports.Http`. It uses no proxy: a lane is reached at its own address."""

    def __init__(self) -> None:
        self._client = httpx.Client(trust_env=False, follow_redirects=False)

    def get(self, url: str, timeout: float, headers: Mapping[str, str] = NO_HEADERS) -> Response:
        return self._send(self._client.build_request("GET", url, headers=dict(headers), timeout=timeout))

    def post_json(self, url: str, body: Value, headers: Mapping[str, str], timeout: float) -> Response:
        return self._send(self._posted(url, body, headers, timeout))

    def stream_json(
        self, url: str, body: Value, headers: Mapping[str, str], timeout: float
    ) -> tuple[int, Iterator[str]]:
        request = self._posted(url, body, headers, timeout)
        with _reachable(request):
            response = self._client.send(request, stream=True)
        return response.status_code, _lines(request, response)

    def _posted(self, url: str, body: Value, headers: Mapping[str, str], timeout: float) -> httpx.Request:
        sent = {"Content-Type": "application/json", **headers}
        content = compact_json(body).encode()
        return self._client.build_request("POST", url, content=content, headers=sent, timeout=timeout)

    def close(self) -> None:
        self._client.close()

    def _send(self, request: httpx.Request) -> Response:
        with _reachable(request):
            response = self._client.send(request)
        return Response(response.status_code, response.text)


@contextmanager
def _reachable(request: httpx.Request) -> Iterator[None]:
    try:
        yield
    except httpx.TimeoutException as error:
        raise UnreachableError(str(request.url), "no response in time") from error
    except httpx.TransportError as error:
        raise UnreachableError(str(request.url), str(error)) from error


def _lines(request: httpx.Request, response: httpx.Response) -> Iterator[str]:
    with _reachable(request), closing(response):
        yield from response.iter_lines()
