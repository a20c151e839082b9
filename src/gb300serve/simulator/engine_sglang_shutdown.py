"""A clean stop of SGLang while it serves: what it prints between SIGTERM and its end."""

from gb300serve.simulator.engine_events import Script
from gb300serve.simulator.engine_sglang_tape import say
from gb300serve.simulator.engine_tape import EventTimeline


def shutdown_script(started: float, at: float) -> Script:
    """From `at` virtual seconds on."""
    tape = EventTimeline(started)
    tape.until(at)
    say(tape, "SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    tape.wait(2.0)
    say(tape, "Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].")
    tape.exit(0)
    return tape.script
