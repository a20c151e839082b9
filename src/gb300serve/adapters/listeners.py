"""Listening sockets of this machine: Linux tells all of them in /proc; elsewhere a bind tells whether one is taken."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

from gb300serve.host.linux import Socket, parse_listening_sockets
from gb300serve.lifecycle.backend import Listener

PROC = Path("/proc")


class SystemListeners:
    """Implements lifecycle's `Listeners` for the machine that the client runs on."""

    def on(self, port: int) -> Listener | None:
        return next(iter(self.each_on(port)), None)

    def each_on(self, port: int) -> tuple[Listener, ...]:
        tables = [PROC / "net" / name for name in ("tcp", "tcp6")]
        if not any(table.exists() for table in tables):
            bound = self._bound(port)
            return () if bound is None else (bound,)
        texts = (table.read_text(encoding="ascii") for table in tables if table.exists())
        return tuple(
            _listener(found) for text in texts for found in parse_listening_sockets(text) if found.port == port
        )

    @staticmethod
    def _bound(port: int) -> Listener | None:
        with socket.socket() as probe:
            try:
                probe.bind(("0.0.0.0", port))  # noqa: S104 - the engine binds every address; nothing listens here
            except OSError:
                return Listener(port, "*")
        return None


def _listener(found: Socket) -> Listener:
    """With the name and number of the process that holds the socket, where we may look."""
    target = f"socket:[{found.inode}]"
    for process in _processes():
        try:
            if any(str(entry.readlink()) == target for entry in (process / "fd").iterdir()):
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return Listener(found.port, found.address, f"{name}, process {process.name}", int(process.name))
        except OSError:
            continue  # it ended, or it is not ours to see
    return Listener(found.port, found.address)


def _processes() -> Iterator[Path]:
    with os.scandir(PROC) as entries:
        yield from (PROC / entry.name for entry in entries if entry.name.isdigit())
