"""Ports to the outside: clock, HTTP, processes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gb300serve.core.errors import Action, ServiceError
from gb300serve.core.values import Value


class Clock(Protocol):
    """Time in seconds since 1970 (UTC), and waiting."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response of any status; `text` is decoded by the response's charset, else as UTF-8."""

    status: int
    text: str


class UnreachableError(ServiceError):
    """No response: the connection was refused or closed, or the timeout passed."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url} does not respond: {reason}", suggest=(Action("status", "check the lane", ref=""),))
        self.url = url
        self.reason = reason


class Http(Protocol):
    """Timeouts are seconds without received data. Raises UnreachableError; responses of any status are returned."""

    def get(self, url: str, timeout: float, headers: Mapping[str, str] = ...) -> Response: ...

    def post_json(self, url: str, body: Value, headers: Mapping[str, str], timeout: float) -> Response: ...

    def stream_json(
        self, url: str, body: Value, headers: Mapping[str, str], timeout: float
    ) -> tuple[int, Iterator[str]]:
        """The status, and the lines of the response as they arrive; the iterator raises UnreachableError too."""


class Processes(Protocol):
    """A process is identified by its id and its start mark, because the system reuses ids."""

    def spawn(self, argv: tuple[str, ...], env: Mapping[str, str], log: Path) -> int:
        """Start `argv` in its own session, so that it outlives this process; returns its id.

        `env` is its complete environment, stdin is empty, stdout and stderr are appended to `log`. Raises OSError if
        the program or the log cannot be opened.
        """

    def start_mark(self, pid: int) -> str | None:
        """A text that no other process with this id ever has; None if the process does not exist or has ended."""

    def kill(self, pid: int, signal: int) -> bool:
        """Send the signal to the process; False if it does not exist."""
