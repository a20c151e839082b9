"""From SGLang's arguments to the settings of a launch. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from gb300serve.engines.parse import parse_argv
from gb300serve.fit.checkpoint import GIB, Checkpoint
from gb300serve.simulator.engine.script import EventTimeline, traceback_lines
from gb300serve.simulator.engine.settings import Settings, SimulatorEnvironment, environment_checkpoint, option_table

# The arguments before the options in a container's command.
_LAUNCHERS = (("-m", "sglang.launch_server"), ("sglang", "serve"))
# Without the option, SGLang derives the share from the GPU; 0.88 is its default for a large GPU (assumed).
DEFAULT_FRACTION = 0.88
# vLLM's names of SGLang's options.
_VLLM_NAMES = {
    "model_path": "model", "served_model_name": "served_model_name", "host": "host", "port": "port",
    "api_key": "api_key", "tool_call_parser": "tool_call_parser", "reasoning_parser": "reasoning_parser",
    "context_length": "max_model_len", "max_running_requests": "max_num_seqs",
    "chunked_prefill_size": "max_num_batched_tokens",
}  # fmt: skip
_ENGRAM_ON_HOST = "SGLANG_ENABLE_DSV41_ENGRAM_HOST_TABLE"


def without_launcher(argv: Sequence[str]) -> tuple[str, ...]:
    """The arguments after `sglang serve` or `-m sglang.launch_server`; all of them if there is no launcher."""
    arguments = tuple(argv)
    starts = (index + 2 for index in range(len(arguments)) if arguments[index : index + 2] in _LAUNCHERS)
    return arguments[next(starts, 0) :]


def parse_settings(argv: Sequence[str], environment: SimulatorEnvironment) -> Settings:
    """Raises ArgumentRefusedError as SGLang's parser does, SimulatorEnvironmentError for an unknown checkpoint."""
    known = environment_checkpoint(environment)
    native = dict(parse_argv(without_launcher(argv), option_table(environment)))
    return Settings(_as_vllm_options(native, known, environment), known, environment, native=native)


def _as_vllm_options(native: Mapping[str, Any], known: Checkpoint, environment: SimulatorEnvironment) -> dict[str, Any]:
    """Options by vLLM's names: those that memory and answers depend on."""
    options = {name: native[key] for key, name in _VLLM_NAMES.items() if native.get(key) is not None} | {
        "gpu_memory_utilization": native.get("mem_fraction_static") or DEFAULT_FRACTION,
        "enable_auto_tool_choice": native.get("tool_call_parser") is not None,
        "enforce_eager": bool(native.get("disable_cuda_graph")),
        **_offload_options(native, known),
    }
    if known.host_tables:
        on_host = (environment.env or {}).get(_ENGRAM_ON_HOST, "0") in {"1", "true"}
        options["engram_config"] = {"cpu_offload": on_host}
    return options


def offloads_layers(native: Mapping[str, Any]) -> bool:
    """Whether whole layers move to the host (utils/offloader.py, OffloaderV2)."""
    return int(native.get("offload_group_size") or -1) > 0


def _offload_options(native: Mapping[str, Any], known: Checkpoint) -> dict[str, Any]:
    """N of every M layers on the host: the same share of the experts' bytes."""
    if not offloads_layers(native) or not known.parameters:
        return {}
    share = int(native.get("offload_num_in_group") or 1) / int(native["offload_group_size"])
    experts = sum(parameter.bytes for parameter in known.parameters) / GIB
    names = sorted({".".join(parameter.name.rsplit(".", 2)[-2:]) for parameter in known.parameters})
    return {"offload_backend": "uva", "cpu_offload_gb": round(share * experts, 2), "cpu_offload_params": names}


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
