"""The records of SGLang's log: its logger, uvicorn's lines, and tracebacks that it logs."""

from collections.abc import Sequence
from datetime import UTC, datetime

from gb300serve.simulator.engine.script import EventTimeline, traceback_lines


def format_stamp(epoch: float) -> str:
    """`[2026-11-30 00:53:20]`, UTC as in its container."""
    return f"[{datetime.fromtimestamp(epoch, UTC):%Y-%m-%d %H:%M:%S}]"


class SglangTimeline(EventTimeline):
    """A timeline that writes records in SGLang's format (stderr)."""

    def log(self, text: str) -> None:
        """Write to its logger; the lines after a line feed have no stamp."""
        self.write("stderr", f"{format_stamp(self.now)} {text}")

    def uvicorn(self, text: str, level: str = "INFO") -> None:
        """Write a line of the HTTP server."""
        self.log(f"{level + ':':<10}{text}")

    def logged_traceback(self, title: str, frames: Sequence[str], error: str) -> None:
        """Write a traceback behind `title`, as `logger.error` prints it."""
        first, *rest = traceback_lines(frames, error)
        self.log(f"{title}: {first}")
        for line in [*rest, ""]:
            self.write("stderr", line)
