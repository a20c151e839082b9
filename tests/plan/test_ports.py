from collections.abc import Sequence

import pytest

from gb300serve.plan.model import published_port, split_port


@pytest.mark.parametrize(
    ("word", "ports"),
    [
        ("8021:8000", (8021, 8000)),
        ("127.0.0.1:8021:8000", (8021, 8000)),
        ("[::1]:8021:8000/tcp", (8021, 8000)),
        ("8000", (None, 8000)),
        ("127.0.0.1::8000", (None, 8000)),
        ("8000-8010:8000-8010", (None, None)),
    ],
)
def test_a_published_port(word: str, ports: tuple[int | None, int | None]) -> None:
    assert split_port(word) == ports


@pytest.mark.parametrize(
    ("network", "ports", "reached"),
    [
        ("host", ["8021:8000"], 8000),
        (None, ["9000:9000", "8021:8000"], 8021),
        ("bridge", ["8000"], None),
        (None, [], None),
    ],
)
def test_the_port_that_clients_reach(network: str | None, ports: Sequence[str], reached: int | None) -> None:
    assert published_port(network, ports, 8000) == reached
