import pytest
from hypothesis import given
from hypothesis import strategies as st

from gb300serve.adapters.docker.stream import ChunkError, dechunked

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
