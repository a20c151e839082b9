"""HTTP to servers on this machine. The only importer of httpx."""

from collections.abc import Mapping
from types import MappingProxyType

import httpx

from gb300serve.core.ports import Response, UnreachableError
from gb300serve.core.values import Value, compact_json

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class HttpClient:
    """`core.http.Http`. Never through a proxy: a lane is asked on its own address."""

    def __init__(self) -> None:
        self._client = httpx.Client(trust_env=False, follow_redirects=False)

    def get(self, url: str, timeout: float, headers: Mapping[str, str] = NO_HEADERS) -> Response:
        return self._send(self._client.build_request("GET", url, headers=dict(headers), timeout=timeout))

    def post_json(self, url: str, body: Value, headers: Mapping[str, str], timeout: float) -> Response:
        sent = {"Content-Type": "application/json", **headers}
        content = compact_json(body).encode()
        return self._send(self._client.build_request("POST", url, content=content, headers=sent, timeout=timeout))

    def close(self) -> None:
        self._client.close()

    def _send(self, request: httpx.Request) -> Response:
        try:
            answer = self._client.send(request)
        except httpx.TimeoutException as error:
            raise UnreachableError(str(request.url), "no answer in time") from error
        except httpx.TransportError as error:
            raise UnreachableError(str(request.url), str(error)) from error
        return Response(answer.status_code, answer.text)
