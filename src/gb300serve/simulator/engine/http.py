"""The simulated engine's HTTP server, on a socket that was bound early in the boot: what all engines share."""

import hashlib
import json
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gb300serve.core.text import parse_digits
from gb300serve.simulator.engine import requests
from gb300serve.simulator.engine.service import Service
from gb300serve.simulator.engine.settings import Settings

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MAX_BYTES = 64 * 1024 * 1024


def bound_socket(settings: Settings) -> socket.socket:
    """A socket that is bound but does not listen yet, as the engine's; OSError if another program listens there."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    held = socket.socket(family, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((settings.host, settings.listen_port))
    except OSError:
        held.close()
        raise
    return held


class EngineServer(ThreadingHTTPServer):
    """Serves one engine on a bound socket."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, held: socket.socket, service: Service, handler: "type[EngineHandler]") -> None:
        super().__init__(held.getsockname()[:2], handler, bind_and_activate=False)
        self.socket.close()
        self.socket = held
        self.service = service
        self._writing = threading.Lock()
        self.server_activate()

    def log_access(self, text: str) -> None:
        """Print one line of the access log without mixing it with another."""
        with self._writing:
            print(text, flush=True)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about a client that disconnected; the engines do not either."""


class EngineHandler(BaseHTTPRequestHandler, ABC):
    """One connection. Engines override what differs."""

    protocol_version = "HTTP/1.1"
    server: EngineServer
    server_version = "uvicorn"
    sys_version = ""
    thought_key: str
    """The key of the model's reasoning in a message."""
    checks_model: bool
    """A request for a model of another name is refused."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        """Drop http.server's own line: `log_request` prints uvicorn's."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        del size
        status = f"{int(code)} {self.responses.get(int(code), ('',))[0]}" if str(code).isdigit() else str(code)
        self.server.log_access(self.access_line("{}:{}".format(*self.client_address[:2]), status))

    @abstractmethod
    def access_line(self, peer: str, status: str) -> str:
        """Uvicorn's line in the engine's log format."""

    @abstractmethod
    def requires_key(self, path: str) -> bool:
        """Whether requests to this path need the API key."""

    def do_GET(self) -> None:  # http.server's name
        path = self.path.partition("?")[0]
        if (sent := self._body()) is None:
            return
        if self.requires_key(path) and not self._is_authorized():
            self.json(401, {"error": "Unauthorized"})
            return
        try:
            self.route(path, sent)
        except requests.RequestRefusedError as refused:
            self.json(refused.status, refused.body)

    def do_POST(self) -> None:  # http.server's name
        self.do_GET()

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "0")
        if (size := parse_digits(length)) is None or size > _MAX_BYTES:
            self.close_connection = True
            self.json(413, {"detail": "Request body too large"})
            return None
        return self.rfile.read(size)

    def _is_authorized(self) -> bool:
        keys = self.server.service.settings.api_keys
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        return not keys or (scheme.lower() == "bearer" and token in keys)

    def route(self, path: str, sent: bytes) -> None:
        service, get = self.server.service, self.command == "GET"
        if path == "/v1/models" and get:
            cards = [self.model_card(name, int(service.started)) for name in service.settings.served_names]
            self.json(200, {"object": "list", "data": cards})
        elif path in ("/v1/chat/completions", "/v1/completions"):
            if get:
                self.json(405, {"detail": "Method Not Allowed"})
            else:
                chat, checks_model = "chat" in path, self.checks_model
                self._complete(requests.parse_request(sent, service.settings, chat=chat, checks_model=checks_model))
        else:
            self.json(404, {"detail": "Not Found"})

    def _complete(self, request: requests.CompletionRequest) -> None:
        service = self.server.service
        completion = requests.complete(request, service.settings)
        created = int(time.time())
        identifier = hashlib.sha256(f"{created}{self.client_address}{request.prompt}".encode()).hexdigest()[:32]
        with service.slot() as queued:
            service.hang_if_wedged()
            pace = service.token_seconds()
            service.wait(service.prefill_seconds(request))
            if request.stream:
                self._stream(requests.stream_chunks(request, completion, identifier, created, self.thought_key), pace)
            else:
                service.wait(pace * completion.completion_tokens)
            service.count_finished(request, completion, queued, pace)
        if not request.stream:
            self.json(200, requests.response_body(request, completion, identifier, created, self.thought_key))

    def model_card(self, name: str, created: int) -> dict[str, Any]:
        length = self.server.service.settings.max_model_len
        return {"id": name, "object": "model", "created": created, "parent": None, "max_model_len": length}

    def _stream(self, events: Iterable[str], pace: float) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self.server.service.wait(pace)
            data = f"data: {event}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def json(self, status: int, content: Mapping[str, Any]) -> None:
        self.send(status, json.dumps(content, ensure_ascii=False).encode(), "application/json")

    def send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
