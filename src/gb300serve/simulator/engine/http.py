"""The stand-in's HTTP server: the engine's paths, statuses and bodies, on a socket that was bound long before."""

import hashlib
import json
import socket
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gb300serve.core.text import parse_digits
from gb300serve.simulator.engine.requests import (
    THOUGHT,
    CompletionRequest,
    RequestRefusedError,
    answer,
    asked,
    body,
    chunks,
)
from gb300serve.simulator.engine.script import API
from gb300serve.simulator.engine.service import Service
from gb300serve.simulator.engine.settings import Settings

TEXT = "text/plain; version=0.0.4; charset=utf-8"
_MOST_BYTES = 64 * 1024 * 1024


def bound_socket(settings: Settings) -> socket.socket:
    """A socket that holds the port without listening, as the engine holds it; OSError when somebody listens there."""
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

    def __init__(self, held: socket.socket, service: Service, handler: "type[Handler]") -> None:
        super().__init__(held.getsockname()[:2], handler, bind_and_activate=False)
        self.socket.close()
        self.socket = held
        self.service = service
        self._writing = threading.Lock()
        self.server_activate()

    def access(self, text: str) -> None:
        """One line of the access log, whole."""
        with self._writing:
            print(text, flush=True)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; the engine does not print it either."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: EngineServer
    thought = THOUGHT
    server_version = "uvicorn"
    sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        """Uvicorn's access line on stdout instead of http.server's own on stderr."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        del size
        peer = f"{self.client_address[0]}:{self.client_address[1]}"
        status = f"{int(code)} {self.responses.get(int(code), ('',))[0]}" if str(code).isdigit() else str(code)
        self.server.access(self.access_line(peer, status))

    def access_line(self, peer: str, status: str) -> str:
        """Uvicorn's, behind the engine's own header."""
        return f'({API}) INFO:     {peer} - "{self.command} {self.path} HTTP/1.1" {status}'

    def guards(self, path: str) -> bool:
        """Whether the key is asked for."""
        return path.startswith("/v1/")

    def do_GET(self) -> None:  # http.server's name
        self._answer()

    def do_POST(self) -> None:  # http.server's name
        self._answer()

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        sent = self._body()
        if sent is None:
            return
        if self.guards(path) and not self._allowed():
            self.json(401, {"error": "Unauthorized"})
            return
        try:
            self.route(path, sent)
        except RequestRefusedError as refused:
            self.json(refused.status, refused.body)

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "0")
        if (size := parse_digits(length)) is None or size > _MOST_BYTES:
            self.close_connection = True
            self.json(413, {"detail": "Request body too large"})
            return None
        return self.rfile.read(size)

    def _allowed(self) -> bool:
        keys = self.server.service.settings.api_keys
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        return not keys or (scheme.lower() == "bearer" and token in keys)

    def route(self, path: str, sent: bytes) -> None:
        """Answer one request."""
        service, get = self.server.service, self.command == "GET"
        if path in ("/health", "/ping") and (get or path == "/ping"):
            self.send(200, b"", "application/json")
        elif path == "/version" and get:
            self.json(200, {"version": service.settings.surroundings.version})
        elif path == "/metrics" and get:
            self.send(200, service.metrics().encode(), TEXT)
        elif path == "/v1/models" and get:
            cards = [self.model_card(name, int(service.started)) for name in service.settings.served_names]
            self.json(200, {"object": "list", "data": cards})
        elif path in ("/v1/chat/completions", "/v1/completions"):
            if get:
                self.json(405, {"detail": "Method Not Allowed"})
            else:
                self._complete(asked(sent, service.settings, chat="chat" in path))
        else:
            self.json(404, {"detail": "Not Found"})

    def _complete(self, request: CompletionRequest) -> None:
        service = self.server.service
        given = answer(request, service.settings)
        created = int(time.time())
        identifier = hashlib.sha256(f"{created}{self.client_address}{request.prompt}".encode()).hexdigest()[:32]
        with service.seat() as queued:
            pace = service.token_seconds()
            service.wait(service.prefill_seconds(request))
            if request.stream:
                self._stream(list(chunks(request, given, identifier, created, self.thought)), pace)
            else:
                service.wait(pace * given.completion_tokens)
            service.finished(request, given, queued, pace)
        if not request.stream:
            self.json(200, body(request, given, identifier, created, self.thought))

    def model_card(self, name: str, created: int) -> dict[str, Any]:
        """One entry of /v1/models; `root` is the model's path."""
        settings = self.server.service.settings
        return {
            "id": name,
            "object": "model",
            "created": created,
            "owned_by": "vllm",
            "root": settings.model,
            "parent": None,
            "max_model_len": settings.max_model_len,
            "permission": [],
        }

    def _stream(self, events: list[str], pace: float) -> None:
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
        """Send an object."""
        self.send(status, json.dumps(content, ensure_ascii=False).encode(), "application/json")

    def send(self, status: int, content: bytes, kind: str) -> None:
        """Send bytes of a media type."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
