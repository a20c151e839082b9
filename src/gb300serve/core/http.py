"""HTTP as a port: what a probe of a server on this machine needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gb300serve.core.errors import ServiceError
from gb300serve.core.values import Value


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
