"""From vLLM's arguments to the settings of a launch. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from gb300serve.core.values import Value
from gb300serve.engines.base import human_int_or_auto
from gb300serve.engines.parse import parse_argv
from gb300serve.engines.tables import OptionTable, tables_for
from gb300serve.simulator.engine.settings import Settings, SimulatorEnvironment, environment_checkpoint


def option_table(environment: SimulatorEnvironment) -> OptionTable:
    """The option table of the engine's version, or of the nearest one."""
    return tables_for("vllm", environment.version).tables[-1]


def _number(kind: str, value: Value) -> Any:
    if kind == "float" and isinstance(value, (int, float)):
        return float(value)
    return human_int_or_auto(value) if kind.startswith("human") and isinstance(value, str) else value


def _typed(options: Mapping[str, Value], table: OptionTable) -> dict[str, Any]:
    """Numbers as vLLM holds them: `1M` is 1048576, `--cpu-offload-gb 60` is 60.0."""
    kinds = {name: option.kind for name in options if (option := table.find(name)) is not None}
    return {name: _number(kinds.get(name, ""), value) for name, value in options.items()}


def parse_settings(argv: Sequence[str], environment: SimulatorEnvironment) -> Settings:
    """The settings of these arguments; a leading `serve`, the image's entrypoint, is dropped.

    Raises ArgumentRefusedError as vLLM's parser does, SimulatorEnvironmentError for an unknown checkpoint.
    """
    arguments = tuple(argv[1:] if argv and argv[0] == "serve" else argv)
    known = environment_checkpoint(environment)
    table = option_table(environment)
    spliced = any(text == "--model" or text.startswith("--model=") for text in arguments)
    return Settings(_typed(parse_argv(arguments, table), table), known, environment, spliced)
