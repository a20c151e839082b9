import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from gb300serve.adapters.http import HttpClient
from gb300serve.core.ports import Response, UnreachableError
from gb300serve.core.values import WrittenFloat


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was asked: /STATUS gives the status."""

    def do_GET(self) -> None:
        self.answer("")

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

    def answer(self, body: str) -> None:
        asked = [self.command, self.path, self.headers["X-Asked"], self.headers["Content-Type"], body]
        self.send_response(int(self.path.strip("/")))
        self.end_headers()
        self.wfile.write(json.dumps(asked).encode())

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def client() -> Iterator[HttpClient]:
    client = HttpClient()
    yield client
    client.close()


def test_get_returns_an_answer_of_any_status(client: HttpClient, address: str) -> None:
    assert client.get(f"{address}/200", 10.0) == Response(200, '["GET", "/200", null, null, ""]')
    assert client.get(f"{address}/503", 10.0, {"X-Asked": "me"}).status == 503
    assert client.get(f"{address}/307", 10.0).status == 307


def test_post_sends_json_with_numbers_as_written(client: HttpClient, address: str) -> None:
    answer = client.post_json(f"{address}/200", {"t": WrittenFloat("0.90"), "ü": [None]}, {"X-Asked": "me"}, 10.0)
    assert json.loads(answer.text) == ["POST", "/200", "me", "application/json", '{"t":0.90,"ü":[null]}']


def test_no_proxy_is_used(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    client = HttpClient()
    assert client.get(f"{address}/200", 10.0).status == 200
    client.close()


def test_refused(client: HttpClient) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/health"
        with pytest.raises(UnreachableError, match=r"does not respond: .*refused"):
            client.get(url, 10.0)


def test_silence(client: HttpClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/health"
        with pytest.raises(UnreachableError, match="does not respond: no answer in time"):
            client.get(url, 0.05)
