"""From the engine's words and the environment to the script of the boot. Pure: nothing runs, nothing is read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gb300serve.core.values import Value
from gb300serve.engines.base import human_int_or_auto
from gb300serve.engines.parse import ArgumentRefusedError, parse_argv
from gb300serve.engines.tables import OptionTable, tables_for
from gb300serve.fit.checkpoint import find_checkpoint
from gb300serve.simulator.engine.faults import afflicted, fault, prepared
from gb300serve.simulator.engine.script import EventTimeline, Script
from gb300serve.simulator.engine.settings import UNKNOWN, Settings, SimulatorEnvironment, SurroundingsError
from gb300serve.simulator.engine.tuning import tuning
from gb300serve.simulator.engine.vllm.boot import boot

# Python imports take this long before the parser sees the words.
_IMPORT_SECONDS = 6.0


def _number(kind: str, value: Value) -> Any:
    if kind == "float" and isinstance(value, (int, float)):
        return float(value)
    return human_int_or_auto(value) if kind.startswith("human") and isinstance(value, str) else value


def _typed(options: Mapping[str, Value], table: OptionTable) -> dict[str, Any]:
    """Numbers as the engine holds them: `1M` is 1048576, and 60 GiB are 60.0."""
    kinds = {name: option.kind for name in options if (option := table.find(name)) is not None}
    return {name: _number(kinds.get(name, ""), value) for name, value in options.items()}


def settings_of(argv: Sequence[str], surroundings: SimulatorEnvironment) -> Settings:
    """The settings that these words say.

    A leading `serve` is the image's entrypoint and counts for nothing. Raises ArgumentRefusedError as the engine's
    parser does, SurroundingsError for a checkpoint or a fault that nobody knows.
    """
    words = tuple(argv[1:] if argv and argv[0] == "serve" else argv)
    known = find_checkpoint(surroundings.model) if surroundings.model else UNKNOWN
    if known is None:
        raise SurroundingsError(
            f"no checkpoint is called {surroundings.model!r}; leave it empty for one of no known size"
        )
    table = tables_for("vllm", surroundings.version).tables[-1]
    spliced = any(word == "--model" or word.startswith("--model=") for word in words)
    return prepared(Settings(_typed(parse_argv(words, table), table), known, surroundings, spliced))


def refused_script(error: ArgumentRefusedError, started: float) -> Script:
    """The parser's refusal: a usage and the reason on stderr, exit code 2."""
    tape = EventTimeline(started)
    tape.enter("starting")
    tape.wait(_IMPORT_SECONDS)
    tape.say("stderr", "usage: vllm serve [model_tag] [options]")
    tape.say("stderr", error.message)
    tape.exit(error.engine_exit_code)
    return tape.script


def script(settings: Settings, stored: int | None, started: float) -> Script:
    """The whole boot. `stored` is what the tuning cache holds for it, None where no cache is kept (see `tuning`)."""
    found = fault(settings)
    held = 0 if found is not None and (found.untuned or found.foreign) else stored
    tuned = tuning(settings, held)
    if found is not None and found.foreign:
        tuned = replace(tuned, foreign=True)
    return afflicted(boot(settings, tuned, started), settings, started)
