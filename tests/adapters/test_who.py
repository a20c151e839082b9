import os
import socket

from gb300serve.adapters.system import asker


def test_who_asks() -> None:
    found = asker({})
    assert (found.host, found.pid) == (socket.gethostname(), os.getpid())
    assert found.user


def test_behind_sudo_it_is_the_one_who_said_sudo() -> None:
    assert asker({"SUDO_USER": "alice"}).user == "alice"
