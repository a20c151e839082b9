import pytest

from gb300serve.lifecycle.backend import Listener
from gb300serve.lifecycle.identity import intruder

OURS = Listener(30006, "0.0.0.0", "vllm, process 7", 7)
PYTHON = Listener(30006, "127.0.0.1", "python3, process 9", 9)
PROXY = Listener(30006, "0.0.0.0", "docker-proxy, process 8", 8)
UNSEEN = Listener(30006, "127.0.0.1")
ELSEWHERE = Listener(30006, "192.168.1.2", "python3, process 9", 9)
SECOND = Listener(30006, "::", "python3, process 9", 9)


@pytest.mark.parametrize(
    ("listeners", "found"),
    [
        ((OURS,), None),
        ((OURS, PYTHON), PYTHON),
        ((OURS, ELSEWHERE), None),
        ((OURS, SECOND), SECOND),
        ((PROXY,), None),
        ((OURS, UNSEEN), None),
        ((), None),
    ],
)
def test_who_a_client_reaches(listeners: tuple[Listener, ...], found: Listener | None) -> None:
    assert intruder(listeners, frozenset({7}), "127.0.0.1") == found
