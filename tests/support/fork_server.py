"""Runs gb300serve's commands in forks of one process that has loaded it: a tenth of the CPU time of a fresh one.

Reads a request a line, an object: `words`, `env`, `cwd`, `out` and `err` (files), and for a process that is to be
hindered `trail` (a file), `dies_at` or `fails_at`. Says the process's id, then, when it has ended, its exit code.

A process with a `trail` writes down there what it is about to change, a line each. At the line numbered `dies_at` it
kills itself as `kill -9` would, before that change. The first change whose line holds all words of `fails_at` finds
the disk full.
"""

import errno
import gc
import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from gb300serve.app.environment import read_environment
from gb300serve.cli.app import invoke, main
from gb300serve.cli.console import TerminalConsole

# Python's audit events of what changes files and processes.
_CHANGES = frozenset(("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "subprocess.Popen", "os.kill"))
_WRITING = os.O_WRONLY | os.O_RDWR


def _changes(event: str, arguments: tuple[Any, ...]) -> bool:
    return event in _CHANGES or (event == "open" and isinstance(arguments[2], int) and bool(arguments[2] & _WRITING))


class Hindrance:
    """Hears of every change before it is made: writes it down, and hinders the one that it is to hinder."""

    def __init__(self, trail: str, dies_at: int | None, fails_at: tuple[str, ...]) -> None:
        self._trail = os.open(trail, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._dies_at = dies_at
        self._fails_at = fails_at
        self._told = 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not _changes(event, arguments) or (self._dies_at is not None and self._told >= self._dies_at):
            return
        self._told += 1
        line = f"{event} {arguments[0]}"
        os.write(self._trail, f"{line}\n".encode("utf-8", "backslashreplace"))
        if self._told == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._fails_at and all(word in line for word in self._fails_at):
            self._fails_at = ()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def become(request: dict[str, Any]) -> None:
    """In the fork: the command, as if it had been started from a shell."""
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for number, path in ((0, os.devnull), (1, request["out"]), (2, request["err"])):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["gb300serve", *request["words"]]
    if request.get("trail"):
        sys.addaudithook(Hindrance(request["trail"], request.get("dies_at"), tuple(request.get("fails_at") or ())))
    main()


def load() -> None:
    """Looking at what a launch would do loads what a launch needs, and changes nothing."""
    for library in ("docker", "httpx", "requests"):
        import_module(library)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = TerminalConsole(nowhere, nowhere, no_color=True)
        for words in (("up", "v14", "--on", "sim", "--show-steps"), ("status", "--on", "sim"), ("journal",)):
            invoke(list(words), console, (read_environment(), console))


def serve() -> None:
    """Until the requests end."""
    load()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                become(request)
            finally:
                os._exit(70)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
