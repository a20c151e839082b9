"""An engine of containers that answers nothing for a while, as when it is upgraded: its containers may go on."""

from types import TracebackType

from gb300serve.core.clock import Clock
from gb300serve.core.errors import BackendError

# Seconds. One that is upgraded is away for some ten; after a minute it is not coming back by itself.
PATIENCE = 60.0


class Absence:
    """A context manager that lets a question fail, again and again for PATIENCE; then its BackendError is raised."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: float | None = None

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, BackendError):
            self._since = None
            return False
        now = self._clock.now()
        self._since = now if self._since is None else self._since
        return now - self._since <= PATIENCE
