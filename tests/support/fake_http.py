"""HTTP without a network: fixed answers, or the servers of a fake backend."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gb300serve.core.ports import Response, UnreachableError
from gb300serve.core.values import Value
from tests.support.fake_backend import FakeBackend


@dataclass
class FixedHttp:
    """`answers` by path; a path without one does not answer. `asked` keeps (method, path, headers, body)."""

    answers: Mapping[str, Response]
    asked: list[tuple[str, str, dict[str, str], Value]] = field(default_factory=list)

    def get(self, url: str, timeout: float, headers: Mapping[str, str] | None = None) -> Response:
        return self._answer("GET", url, headers or {}, None)

    def post_json(self, url: str, body: Value, headers: Mapping[str, str], timeout: float) -> Response:
        return self._answer("POST", url, headers, body)

    def stream_json(
        self, url: str, body: Value, headers: Mapping[str, str], timeout: float
    ) -> tuple[int, Iterator[str]]:
        response = self._answer("POST", url, headers, body)
        return response.status, iter(response.text.splitlines())

    def _answer(self, method: str, url: str, headers: Mapping[str, str], body: Value) -> Response:
        path = "/" + url.split("/", 3)[3]
        self.asked.append((method, path, dict(headers), body))
        if path not in self.answers:
            raise UnreachableError(url, "connection refused")
        return self.answers[path]


@dataclass
class BackendHttp:
    """What the containers of a fake backend answer: the model names of their plans, their start, a completion."""

    backend: FakeBackend
    stranger_started_at: float | None = None
    """Another server, on every port, that started then."""
    completes: bool = True
    asked: int = 0
    """Completions that were asked for."""

    def get(self, url: str, timeout: float, headers: Mapping[str, str] | None = None) -> Response:
        names, started_at = self._server(url)
        if url.endswith("/metrics"):
            return Response(200, f"process_start_time_seconds {started_at!r}\nvllm:num_requests_running 0.0\n")
        data = [{"id": name, "object": "model", "root": "/model", "max_model_len": 1048576} for name in names]
        return Response(200, json.dumps({"object": "list", "data": data}))

    def post_json(self, url: str, body: Value, headers: Mapping[str, str], timeout: float) -> Response:
        self._server(url)
        self.asked += 1
        if not self.completes:
            return Response(500, '{"error": {"message": "EngineCore encountered an issue"}}')
        message = {"role": "assistant", "content": None, "reasoning": "The user wants"}
        usage = {"completion_tokens": 8}
        return Response(200, json.dumps({"choices": [{"index": 0, "message": message}], "usage": usage}))

    def stream_json(
        self, url: str, body: Value, headers: Mapping[str, str], timeout: float
    ) -> tuple[int, Iterator[str]]:
        response = self.post_json(url, body, headers, timeout)
        return response.status, iter(response.text.splitlines())

    def _server(self, url: str) -> tuple[tuple[str, ...], float]:
        port = int(url.split("/")[2].rpartition(":")[2])
        container = self.backend.serving(port)
        if self.stranger_started_at is not None:
            return ("dsv41-flash-uva",), self.stranger_started_at
        plan = self.backend.plan_of(container.id) if container else None
        if container is None or plan is None or container.started_at is None:
            raise UnreachableError(url, "connection refused")
        return plan.served_names, container.started_at
