"""A clean stop while serving: what the engine prints between SIGTERM and its end with 0."""

from gb300serve.simulator.engine_events import Script
from gb300serve.simulator.engine_tape import API, CORE, EventTimeline

_LINES = (
    (API, "launcher.py:254", "API server: shutdown triggered"),
    (API, "launcher.py:270", "API server: stopping engine client mode=abort timeout=0s"),
    (API, "core_client.py:770", "MPClient: start timeout=0s"),
    (API, "core_client.py:772", "MPClient: stopping engine manager"),
    (API, "utils.py:628", "Process manager: send sigterm to process EngineCore"),
    (CORE, "core.py:1454", "EngineCore: trigger received signal=SIGTERM"),
    (CORE, "core.py:1635", "EngineCore: start mode=abort timeout=0s"),
    (CORE, "core.py:1666", "EngineCore: request processing complete; starting resource teardown"),
    (CORE, "core.py:1499", "EngineCore: exiting busy loop"),
    (API, "core_client.py:774", "MPClient: engine manager stopped"),
    (API, "core_client.py:777", "MPClient: complete"),
    (API, "launcher.py:279", "API server: engine client stopped"),
    (API, "launcher.py:304", "API server: shutting down FastAPI HTTP server"),
)


def shutdown_script(started: float, at: float) -> Script:
    """From `at` virtual seconds on."""
    tape = EventTimeline(started)
    tape.until(at)
    for process, source, text in _LINES:
        tape.log(process, source, f"[shutdown] {text}")
        tape.wait(0.02)
    for text in ("Shutting down", "Waiting for application shutdown.", "Application shutdown complete."):
        tape.uvicorn(text)
    tape.uvicorn("Finished server process [1]")
    tape.exit(0)
    return tape.script
