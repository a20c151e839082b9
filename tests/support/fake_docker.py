"""A Docker Engine that only answers questions, on a socket of its own: /_ping, /info, containers and images.

The question whether the sources of mounts exist is asked with a container that is created and removed at once.
"""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

Json = dict[str, Any]
INFO: Json = {
    "ServerVersion": "28.2.2",
    "Architecture": "aarch64",
    "Runtimes": {"nvidia": {}, "runc": {}},
    "DefaultRuntime": "runc",
}


@dataclass
class FakeDocker:
    """`containers` as `docker inspect` shows them, `images` by reference."""

    host: str
    info: Json = field(default_factory=lambda: dict(INFO))
    containers: list[Json] = field(default_factory=list)
    images: dict[str, Json] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str, *, labelled: bool = False) -> Any:
        """None is 404."""
        self.asked.append(path)
        if path == "/containers/json":
            found = [{"Id": each["Id"], "Names": [each["Name"]], "Labels": {}} for each in self.containers]
            return [] if labelled else found  # only what looks for leftovers of its own asks by label
        if path.startswith("/containers/"):
            return next((each for each in self.containers if each["Id"] == path.split("/")[2]), None)
        if path.startswith("/images/"):
            return self.images.get(path.removeprefix("/images/").removesuffix("/json"))
        return {"/_ping": "OK", "/info": self.info}.get(path)


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    docker: FakeDocker


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        versionless = "/" + path.split("/", 2)[2] if path.startswith("/v1.") else path
        found = self.server.docker.answer(versionless, labelled="label" in url.query)
        self._send(404 if found is None else 200, {"message": "no such thing"} if found is None else found)

    def do_POST(self) -> None:
        """What looks for the sources of mounts creates a container and removes it; nothing else is taken."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        name = "name=" in urlsplit(self.path).query
        created = self.path.endswith("/containers/create") or "/containers/create?" in self.path
        self._send(201 if created and not name else 403, {"Id": "c0ffee", "message": "this Engine only answers"})

    def do_DELETE(self) -> None:
        self.send_response(204)
        self.end_headers()

    def _send(self, status: int, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Api-Version", "1.50")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in http.server
        return

    def address_string(self) -> str:
        return "unix"


@contextmanager
def fake_docker(directory: Path) -> Iterator[FakeDocker]:
    """The Engine on `<directory>/docker.sock`."""
    path = directory / "docker.sock"
    docker = FakeDocker(f"unix://{path}")
    with _Server(str(path), _Handler) as server:
        server.docker = docker
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield docker
        finally:
            server.shutdown()
            thread.join()


def inspected(identity: str, name: str, *, running: bool = True, **changes: Any) -> Json:
    """A container on the host's network with every GPU; `changes` are labels, command, gpus and image."""
    gpus = [{"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}]
    return {
        "Id": identity,
        "Name": f"/{name}",
        "Image": "sha256:bbbb",
        "Created": "2026-11-29T10:00:00Z",
        "RestartCount": 0,
        "State": {
            "Status": "running" if running else "exited",
            "StartedAt": "2026-11-29T10:00:00Z",
            "FinishedAt": "2026-11-29T11:00:00Z",
            "ExitCode": 0,
            "OOMKilled": False,
            "Error": "",
            "Running": running,
        },
        "Config": {
            "Image": changes.get("image", "lmsysorg/sglang:dev"),
            "Labels": changes.get("labels", {}),
            "Cmd": changes.get("command", []),
            "Env": [],
        },
        "HostConfig": {
            "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
            "NetworkMode": "host",
            "DeviceRequests": gpus if changes.get("gpus", True) else [],
            "PortBindings": {},
        },
        "NetworkSettings": {"Ports": {}},
    }


def image(digest: str = "sha256:" + "0" * 64, architecture: str = "arm64") -> Json:
    """An image with vLLM's entrypoint."""
    return {
        "Id": "sha256:aaaa",
        "RepoDigests": [f"vllm/vllm-openai@{digest}"],
        "Architecture": architecture,
        "Config": {"Entrypoint": ["vllm", "serve"]},
    }
