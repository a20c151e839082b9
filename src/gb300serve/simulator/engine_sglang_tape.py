"""SGLang's log formats, written on a tape: its own logger and uvicorn's, both with a date and without a level."""

from collections.abc import Sequence
from datetime import UTC, datetime

from gb300serve.simulator.engine_tape import EventTimeline, bar, clock, traceback_lines


def stamp(epoch: float) -> str:
    """`[2026-11-30 00:53:20]`, UTC as in its container."""
    return f"[{datetime.fromtimestamp(epoch, UTC):%Y-%m-%d %H:%M:%S}]"


def say(tape: EventTimeline, text: str) -> None:
    """A line of its logger (stderr); what follows a line feed has no stamp."""
    tape.say("stderr", f"{stamp(tape.now)} {text}")


def uvicorn(tape: EventTimeline, text: str, level: str = "INFO") -> None:
    """A line of the HTTP server (stderr)."""
    say(tape, f"{level + ':':<10}{text}")


def traceback(tape: EventTimeline, frames: Sequence[str], error: str) -> None:
    """What Python prints of a process that ends. A frame is `file:line:function:source line`."""
    for line in traceback_lines(frames, error):
        tape.say("stderr", line)


def counted(tape: EventTimeline, title: str, total: int, seconds: float, unit: str = "it") -> None:
    """A bar that rewrites itself, `title` with `{done}` in it where it names the step."""
    begun, pace = tape.at, seconds / max(1, total)
    for done in range(total + 1):
        tape.until(begun + done * pace)
        times = f"{clock(done * pace)}<{clock((total - done) * pace)}, {pace:5.2f}s/{unit}"
        shown = f"{title.format(done=done)} {done * 100 // total:3d}%|{bar(done, total)}| {done}/{total} [{times}]"
        tape.say("stderr", f"\r{shown}", end="\n" if done == total else "")
