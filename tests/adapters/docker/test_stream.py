import faulthandler
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from gb300serve.adapters.docker.stream import ResponseChunks

# Far beyond what a piece takes; only what goes wrong waits for it.
PATIENCE = 60.0


class Pieces(BaseHTTPRequestHandler):
    """Sends a piece, and the next when the test says so; breaks off where it asks for /broken, or /reset."""

    protocol_version = "HTTP/1.1"
    go_on = threading.Event()

    def do_GET(self) -> None:
        if self.path == "/whole":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            port = str(self.client_address[1]).encode()
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(port), port))
            return
        if self.path == "/attached":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"one")
            self.close_connection = True
            return
        if self.path == "/reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"3\r\none\r\n")
        self.go_on.wait(PATIENCE)
        if self.path not in {"/broken", "/reset"}:
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


@pytest.mark.parametrize("path", ["", "/whole", "/attached"])
def test_leaving_ends_another_thread_that_reads(address: str, path: str) -> None:
    for _ in range(20):
        with requests.Session() as session:
            with ResponseChunks(session.get(f"{address}{path}", stream=True)) as chunks:
                reader = threading.Thread(target=lambda chunks=chunks: list(iter(lambda: chunks.next(PATIENCE), None)))
                reader.start()
            reader.join(PATIENCE / 2)
            assert not reader.is_alive()


def test_leaving_what_has_ended_unread(address: str) -> None:
    with requests.Session() as session, ResponseChunks(session.get(f"{address}/whole", stream=True)) as chunks:
        chunks._thread.join(PATIENCE)  # it has read all, and nobody has asked for it


@pytest.mark.parametrize("path", ["/whole", "/broken", "/attached", "/reset"])
def test_leaving_what_has_just_ended_by_itself(address: str, path: str) -> None:
    """Its end has come, and nobody has taken it yet: its connection may be another's already, or closed."""
    Pieces.go_on.set()
    with requests.Session() as session, ResponseChunks(session.get(f"{address}{path}", stream=True)):
        for thread in threading.enumerate():
            if thread.name == "docker-log":
                thread.join(PATIENCE)


def test_what_was_read_to_its_end_leaves_its_connection_to_the_next(address: str) -> None:
    seen = []
    with requests.Session() as session:
        for _ in range(3):
            with ResponseChunks(session.get(f"{address}/whole", stream=True)) as chunks:
                seen.append(chunks.next(PATIENCE))
                assert chunks.next(PATIENCE) is None
    assert len(set(seen)) == 1


class Many(BaseHTTPRequestHandler):
    """Sends short pieces until the client leaves."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b"4\r\nline\r\n" * 50)
        self.close_connection = True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print nothing."""


class InterruptedReadingError(Exception):
    """Stands for Ctrl-C: raised in the main thread, wherever that is."""


@pytest.fixture
def interrupts() -> Iterator[None]:
    def raise_it(*_: object) -> None:
        raise InterruptedReadingError

    before = signal.signal(signal.SIGALRM, raise_it)
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_at_any_moment_lets_it_leave() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Many) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        with requests.Session() as session:
            for number in range(300):
                response = session.get(f"http://127.0.0.1:{server.server_port}", stream=True)
                chunks = ResponseChunks(response)
                with suppress(InterruptedReadingError), chunks:
                    signal.setitimer(signal.ITIMER_REAL, 0.0003 + number * 1e-5)
                    while True:
                        chunks._pieces.get(timeout=PATIENCE)
        server.shutdown()
        thread.join()
