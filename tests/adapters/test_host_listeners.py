import os
import socket

import pytest

from gb300serve.adapters.host import PROC, SystemListeners

pytestmark = pytest.mark.skipif(not PROC.joinpath("net/tcp").exists(), reason="left out: /proc tells who listens")


def test_everyone_on_a_port_with_the_process() -> None:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
        other.bind(("127.0.0.2", port))
        one.listen()
        other.listen()
        found = SystemListeners().each_on(port)
        (first, *_) = SystemListeners().each_on(port)
    assert sorted((each.address, each.port, each.pid) for each in found) == [
        ("127.0.0.1", port, os.getpid()),
        ("127.0.0.2", port, os.getpid()),
    ]
    assert first in found
    assert all((each.process or "").endswith(f", process {os.getpid()}") for each in found)
    assert SystemListeners().each_on(port) == ()
