"""The stand-in's HTTP server: the engine's paths, statuses and bodies, on a socket that was bound long before."""

import hashlib
import json
import socket
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gb300serve.simulator.engine_answer import answer, body, chunks
from gb300serve.simulator.engine_request import Asked, RequestRefusedError, asked
from gb300serve.simulator.engine_service import Service
from gb300serve.simulator.engine_settings import Settings
from gb300serve.simulator.engine_tape import API

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
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

    def __init__(self, held: socket.socket, service: Service) -> None:
        super().__init__(held.getsockname()[:2], Handler, bind_and_activate=False)
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
    server_version = "uvicorn"
    sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        """Uvicorn's access line on stdout instead of http.server's own on stderr."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        del size
        peer = f"{self.client_address[0]}:{self.client_address[1]}"
        status = f"{int(code)} {self.responses.get(int(code), ('',))[0]}" if str(code).isdigit() else str(code)
        self.server.access(f'({API}) INFO:     {peer} - "{self.command} {self.path} HTTP/1.1" {status}')

    def do_GET(self) -> None:  # http.server's name
        self._answer()

    def do_POST(self) -> None:  # http.server's name
        self._answer()

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        sent = self._body()
        if sent is None:
            return
        if path.startswith("/v1/") and not self._allowed():
            self._json(401, {"error": "Unauthorized"})
            return
        try:
            self._route(path, sent)
        except RequestRefusedError as refused:
            self._json(refused.status, refused.body)

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > _MOST_BYTES:
            self.close_connection = True
            self._json(413, {"detail": "Request body too large"})
            return None
        return self.rfile.read(int(length))

    def _allowed(self) -> bool:
        keys = self.server.service.settings.api_keys
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        return not keys or (scheme.lower() == "bearer" and token in keys)

    def _route(self, path: str, sent: bytes) -> None:
        service, get = self.server.service, self.command == "GET"
        if path in ("/health", "/ping") and (get or path == "/ping"):
            self._send(200, b"", "application/json")
        elif path == "/version" and get:
            self._json(200, {"version": service.settings.surroundings.version})
        elif path == "/metrics" and get:
            self._send(200, service.metrics().encode(), _TEXT)
        elif path == "/v1/models" and get:
            self._json(200, _models(service.settings, int(service.started)))
        elif path in ("/v1/chat/completions", "/v1/completions"):
            if get:
                self._json(405, {"detail": "Method Not Allowed"})
            else:
                self._complete(asked(sent, service.settings, chat="chat" in path))
        else:
            self._json(404, {"detail": "Not Found"})

    def _complete(self, request: Asked) -> None:
        service = self.server.service
        given = answer(request, service.settings)
        created = int(time.time())
        identifier = hashlib.sha256(f"{created}{self.client_address}{request.prompt}".encode()).hexdigest()[:32]
        with service.seat() as queued:
            pace = service.token_seconds()
            service.wait(service.prefill_seconds(request))
            if request.stream:
                self._stream(list(chunks(request, given, identifier, created)), pace)
            else:
                service.wait(pace * given.completion_tokens)
            service.finished(request, given, queued, pace)
        if not request.stream:
            self._json(200, body(request, given, identifier, created))

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

    def _json(self, status: int, content: Mapping[str, Any]) -> None:
        self._send(status, json.dumps(content, ensure_ascii=False).encode(), "application/json")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _models(settings: Settings, created: int) -> dict[str, Any]:
    """The served names; `root` is the model's path."""
    return {
        "object": "list",
        "data": [
            {
                "id": name,
                "object": "model",
                "created": created,
                "owned_by": "vllm",
                "root": settings.model,
                "parent": None,
                "max_model_len": settings.max_model_len,
                "permission": [],
            }
            for name in settings.served_names
        ],
    }
