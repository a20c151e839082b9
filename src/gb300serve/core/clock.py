"""Time as a port, so that whatever decides can be tested without waiting."""

from typing import Protocol


class Clock(Protocol):
    """Seconds since 1970 in UTC, and the only way to wait."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...
