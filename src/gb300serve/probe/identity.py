"""Is the server that answers the one in our container?

Two engines on one port of the host both start without an error (the socket is bound early with SO_REUSEADDR and listens
only at the end of the boot), and the one that lost answers nothing: an answer alone proves nothing.
"""

from typing import Literal

from gb300serve.core.http import Http
from gb300serve.probe.endpoint import Endpoint
from gb300serve.probe.metrics import metrics

Identity = Literal["ours", "other", "unknown"]

# The engine is the container's first process and starts with it. The kernel gives process starts against its own
# boot time, which adjustments of the clock move by seconds; a wrapper before the engine may take its time.
EARLIER = 10.0
LATER = 60.0


def identity(client: Http, endpoint: Endpoint, started_at: float) -> Identity:
    """`started_at` is the container's start, seconds since 1970. `unknown` where the engine does not say its own start.

    Raises UnreachableError or UnexpectedAnswerError.
    """
    return compare(metrics(client, endpoint).process_start, started_at)


def compare(process_start: float | None, started_at: float) -> Identity:
    """Both in seconds since 1970."""
    if process_start is None:
        return "unknown"
    return "ours" if started_at - EARLIER <= process_start <= started_at + LATER else "other"
