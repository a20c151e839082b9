"""Processes as a port: started on their own, recognised again by a mark, ended by a signal."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Processes(Protocol):
    """Every process is named by its id together with its start mark: ids alone are used again."""

    def spawn(self, argv: tuple[str, ...], env: Mapping[str, str], log: Path) -> int:
        """Start `argv` in a session of its own, so that it outlives this process; returns its id.

        `env` is its whole environment; it reads nothing, and what it writes on either stream is appended to `log`.
        OSError when the program or the log cannot be opened.
        """

    def start_mark(self, pid: int) -> str | None:
        """A text that no later process with this id has; None when there is none, or it has ended."""

    def kill(self, pid: int, signal: int) -> bool:
        """Send the signal to the process; False when there is no such process."""
