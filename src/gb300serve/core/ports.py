"""Processes as a port: started on their own, recognised again by a mark, ended by a signal."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gb300serve.core.errors import ServiceError
from gb300serve.core.values import Value


class Clock(Protocol):
    """Seconds since 1970 in UTC, and the only way to wait."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer, whatever its status; `text` is decoded as the answer says, else as UTF-8."""

    status: int
    text: str


class UnreachableError(ServiceError):
    """No answer: refused, cut off, or later than the timeout."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url} does not answer: {reason}", hint="see whether the lane serves: gb300serve status")
        self.url = url
        self.reason = reason


class Http(Protocol):
    """Timeouts are seconds without a sign of life. Raises UnreachableError; an answer of any status is returned."""

    def get(self, url: str, timeout: float, headers: Mapping[str, str] = ...) -> Response: ...

    def post_json(self, url: str, body: Value, headers: Mapping[str, str], timeout: float) -> Response: ...


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
