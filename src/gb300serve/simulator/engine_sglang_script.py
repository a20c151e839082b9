"""From SGLang's words and the environment to the script of its boot. Pure: nothing runs, nothing is read."""

from collections.abc import Sequence

from gb300serve.engines.parse import ArgumentRefusedError
from gb300serve.simulator.engine_events import Script
from gb300serve.simulator.engine_faults import afflicted, prepared
from gb300serve.simulator.engine_settings import Settings, SimulatorEnvironment
from gb300serve.simulator.engine_sglang_boot import WARNED, boot
from gb300serve.simulator.engine_sglang_settings import settings_of as read
from gb300serve.simulator.engine_tape import EventTimeline

# Python imports take this long before the parser sees the words.
_IMPORT_SECONDS = 9.0


def settings_of(argv: Sequence[str], surroundings: SimulatorEnvironment) -> Settings:
    """The settings that these words say. Raises as the engine's parser does, SurroundingsError for an odd rehearsal."""
    return prepared(read(argv, surroundings))


def refused_script(error: ArgumentRefusedError, started: float) -> Script:
    """The parser's refusal: a usage and the reason on stderr, exit code 2."""
    tape = EventTimeline(started)
    tape.enter("starting")
    tape.wait(_IMPORT_SECONDS)
    tape.say("stderr", WARNED)
    tape.say("stderr", "usage: sglang serve [-h] --model-path MODEL_PATH")
    tape.say("stderr", error.message)
    tape.exit(error.engine_exit_code)
    return tape.script


def script(settings: Settings, stored: int | None, started: float) -> Script:  # noqa: ARG001 - another engine's cache
    """The whole boot. Its own tuning cache is never kept here: tuning takes as long at each start."""
    return afflicted(boot(settings, started), settings, started)
