"""From vLLM's arguments to the settings of a launch. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from gb300serve.core.values import Value
from gb300serve.engines.base import human_int_or_auto
from gb300serve.engines.parse import parse_argv
from gb300serve.engines.tables import OptionTable
from gb300serve.simulator.engine.script import EventTimeline, format_clock, traceback_lines
from gb300serve.simulator.engine.settings import Settings, SimulatorEnvironment, environment_checkpoint, option_table


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


API = "APIServer pid=1"
CORE = "EngineCore pid=364"
_SETTLED = 0.3
STAMP_FORMAT = "%m-%d %H:%M:%S"


class VllmTimeline(EventTimeline):
    """A timeline that writes records in vLLM's format."""

    def log(self, process: str, source: str, text: str, level: str = "INFO") -> None:
        """Write to vLLM's own logger (stdout)."""
        stamp = datetime.fromtimestamp(self.now, UTC).strftime(STAMP_FORMAT)
        for line in text.split("\n"):
            self.write("stdout", f"({process}) {level} {stamp} [{source}] {line}")

    def flashinfer(self, source: str, text: str, level: str = "INFO") -> None:
        """Write to FlashInfer's logger (stderr)."""
        moment = datetime.fromtimestamp(self.now, UTC)
        dated = f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"
        self.write("stderr", f"({CORE}) {dated} - {level} - {source} - flashinfer.jit: [Autotuner]: {text}")

    def uvicorn(self, text: str, level: str = "INFO") -> None:
        """Write a line of the HTTP server (stderr)."""
        self.write("stderr", f"({API}) {level + ':':<10}{text}")

    def logged_traceback(self, source: str, frames: Sequence[str], error: str) -> None:
        """Write a traceback as an ERROR of the engine process's logger (stdout)."""
        self.log(CORE, source, "\n".join(traceback_lines(frames, error)), level="ERROR")

    def process_traceback(self, process: str, frames: Sequence[str], error: str) -> None:
        """Write the traceback with which a process ends (stderr)."""
        self.traceback(frames, error, f"({process}) ")

    def shard_bars(self, shards: int, seconds: float) -> None:
        """Write the progress of the checkpoint's shards, one line for each update, and the seconds that they took."""
        steps = min(8, shards)
        pace = seconds / shards
        begun = self.at
        for step in range(steps + 1):
            done = shards * step // steps
            self.until(begun + done * pace)
            elapsed, left = format_clock(done * pace), format_clock((shards - done) * pace)
            times = f"{elapsed}<{left}, {pace:5.2f}s/it" if step else "00:00<?, ?it/s"
            share = f"{done * 100 // shards:3d}% Completed | {done}/{shards} [{times}]"
            self.write("stderr", f"\rLoading safetensors checkpoint shards: {share}")
        self.write("stderr", "")
        self.wait(_SETTLED)
        self.log(CORE, "default_loader.py:501", f"Loading weights took {seconds:.2f} seconds")
