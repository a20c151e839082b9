import socket
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from gb300serve.adapters.docker.stream import ChunkError, ResponseChunks, dechunked, paused

PARTS = st.lists(st.binary(min_size=1, max_size=40), max_size=6)
CUTS = st.lists(st.integers(1, 30), min_size=1, max_size=40)


def chunked(parts: list[bytes], end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + end


def pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    """Of the sizes in turn, as long as there is something left."""
    found: list[bytes] = []
    at = 0
    while at < len(data):
        size = sizes[len(found) % len(sizes)]
        found.append(data[at : at + size])
        at += size
    return found


@given(PARTS, CUTS)
def test_the_body_whatever_the_pieces(parts: list[bytes], sizes: list[int]) -> None:
    assert b"".join(dechunked(pieces(chunked(parts), sizes))) == b"".join(parts)


def test_what_came_together_stays_together() -> None:
    arriving = [chunked([b"one\n", b"two\n"], b""), chunked([b"three"])]
    assert list(dechunked(arriving)) == [b"one\ntwo\n", b"three"]


def test_part_of_a_chunk_is_passed_on() -> None:
    assert next(dechunked([b"5\r\nth", b"ree\r\n"])) == b"th"


def test_extensions_and_trailers_are_passed_over() -> None:
    assert list(dechunked([b"3;a=b\r\none\r\n0;last\r\nX: y\r\n\r\n"])) == [b"one"]


def test_nothing_is_read_behind_the_end() -> None:
    arriving = iter([chunked([b"one"]), b"more"])
    assert list(dechunked(arriving)) == [b"one"]
    assert next(arriving) == b"more"


@given(PARTS, CUTS, st.data())
def test_a_body_that_is_cut_off(parts: list[bytes], sizes: list[int], data: st.DataObject) -> None:
    whole = chunked(parts)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    told: list[bytes] = []
    with pytest.raises(ChunkError, match="the response ended inside its body"):
        told.extend(dechunked(pieces(cut, sizes)))


@pytest.mark.parametrize("data", [b"one\r\n", b"\r\n\r\n", b"-3\r\none\r\n", b"3\r\nonex2\r\ntwo\r\n"])
def test_what_is_no_chunk(data: bytes) -> None:
    with pytest.raises(ChunkError, match="not the size of a chunk"):
        list(dechunked([data]))


def test_a_size_that_does_not_end() -> None:
    with pytest.raises(ChunkError, match="does not end"):
        list(dechunked([b"1" * 600, b"1" * 600, b"1\r\n"]))


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


def test_pauses_grow_while_little_comes_and_no_more_comes_than_the_sender_can_hold() -> None:
    quiet = [0.002]
    while quiet[-1] < 0.2:
        quiet.append(paused(quiet[-1], 0.0, 1, 100))
    assert len(quiet) == 8
    assert paused(0.2, 0.0, 200, 20_000) == 0.2
    assert (paused(0.2, 0.1, 1, 100), paused(0.2, 0.3, 1, 100)) == (0.2, 0.002), "after silence it begins anew"
    for per_second in (1_000, 5_000, 50_000):
        pause = 0.2
        for _ in range(12):  # of what comes in a pause, 277 lines are there when it ends, and the rest waits
            pause = paused(pause, 0.0, min(277, round(per_second * pause)), 0)
        assert pause * per_second == pytest.approx(200, abs=2)


def test_pauses_leave_room_for_bytes_without_lines() -> None:
    """Of such ones a socket holds about 200 kB."""
    for per_second in (2_000_000, 100_000_000):
        pause = 0.2
        for _ in range(20):
            pause = paused(pause, 0.0, 0, min(200_000, round(per_second * pause)))
        assert pause * per_second == pytest.approx(65_536, rel=0.01)
