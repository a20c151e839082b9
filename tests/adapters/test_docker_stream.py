import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from gb300serve.adapters.docker_stream import ResponseChunks

# Far beyond what a piece takes; only what goes wrong waits for it.
PATIENCE = 60.0


class Pieces(BaseHTTPRequestHandler):
    """Sends a piece, and the next when the test says so; breaks off where it asks for /broken."""

    protocol_version = "HTTP/1.1"
    go_on = threading.Event()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"3\r\none\r\n")
        self.go_on.wait(PATIENCE)
        if self.path != "/broken":
            self.wfile.write(b"3\r\ntwo\r\n0\r\n\r\n")
        self.close_connection = True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    Pieces.go_on.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Pieces) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        Pieces.go_on.set()
        server.shutdown()
        thread.join()


def test_pieces_silence_and_the_end(address: str) -> None:
    with requests.Session() as session, ResponseChunks(session.get(address, stream=True)) as chunks:
        assert chunks.next(PATIENCE) == b"one"
        assert chunks.next(0.01) == b""
        Pieces.go_on.set()
        assert [chunks.next(PATIENCE) for _ in range(3)] == [b"two", None, None]


def test_a_broken_connection_ends(address: str) -> None:
    with requests.Session() as session, ResponseChunks(session.get(f"{address}/broken", stream=True)) as chunks:
        Pieces.go_on.set()
        assert [chunks.next(PATIENCE) for _ in range(2)] == [b"one", None]


def test_leaving_does_not_wait_for_what_never_comes(address: str) -> None:
    before = threading.active_count()
    with requests.Session() as session:
        with ResponseChunks(session.get(address, stream=True)) as chunks:
            assert chunks.next(PATIENCE) == b"one"
        assert "docker-log" not in {thread.name for thread in threading.enumerate()}
        assert threading.active_count() <= before + 1
