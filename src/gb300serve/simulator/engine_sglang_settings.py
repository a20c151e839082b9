"""SGLang's words as the stand-in takes them: its own options, and what they mean for memory and answers. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from gb300serve.core.default_ports import DEFAULT_PORTS
from gb300serve.engines.parse import parse_argv
from gb300serve.engines.shipped import tables_for
from gb300serve.engines.table import OptionTable
from gb300serve.fit.catalog import checkpoint
from gb300serve.fit.checkpoint import GIB, Checkpoint
from gb300serve.simulator.engine_settings import Settings, SimulatorEnvironment, SurroundingsError
from gb300serve.simulator.engine_unknown import UNKNOWN

# What stands before the options, in a container's command.
_LAUNCHERS = (("-m", "sglang.launch_server"), ("sglang", "serve"))
# Where no option says it, SGLang derives the share from the GPU: 0.88 is its rule of thumb for a large one (assumed).
DEFAULT_FRACTION = 0.88
# As its own option is called in vLLM.
_MEANS = {
    "model_path": "model",
    "served_model_name": "served_model_name",
    "host": "host",
    "api_key": "api_key",
    "tool_call_parser": "tool_call_parser",
    "reasoning_parser": "reasoning_parser",
    "context_length": "max_model_len",
    "max_running_requests": "max_num_seqs",
    "chunked_prefill_size": "max_num_batched_tokens",
}
_ENGRAM_ON_HOST = "SGLANG_ENABLE_DSV41_ENGRAM_HOST_TABLE"


def table_of(surroundings: SimulatorEnvironment) -> OptionTable:
    """The option table that speaks for the version: its own, else its nearest neighbour's."""
    return tables_for("sglang", surroundings.version).tables[-1]


def options_of(argv: Sequence[str]) -> tuple[str, ...]:
    """The words behind the launcher; all of them where there is none."""
    words = tuple(argv)
    places = (index + 2 for index in range(len(words)) if words[index : index + 2] in _LAUNCHERS)
    return words[next(places, 0) :]


def settings_of(argv: Sequence[str], surroundings: SimulatorEnvironment) -> Settings:
    """Raises ArgumentRefusedError as the engine's parser does, SurroundingsError for an unknown checkpoint."""
    known = checkpoint(surroundings.model) if surroundings.model else UNKNOWN
    if known is None:
        raise SurroundingsError(f"no checkpoint is called {surroundings.model!r}; leave it empty for an unknown one")
    said = dict(parse_argv(options_of(argv), table_of(surroundings)))
    return Settings(_meaning(said, known, surroundings), known, surroundings, said=said)


def _meaning(said: Mapping[str, Any], known: Checkpoint, surroundings: SimulatorEnvironment) -> dict[str, Any]:
    """Options by vLLM's names: those that memory and answers depend on."""
    meant = {name: said[key] for key, name in _MEANS.items() if said.get(key) is not None}
    meant |= {
        "port": said.get("port", DEFAULT_PORTS["sglang"]),
        "gpu_memory_utilization": said.get("mem_fraction_static") or DEFAULT_FRACTION,
        "enable_auto_tool_choice": said.get("tool_call_parser") is not None,
        "enforce_eager": bool(said.get("disable_cuda_graph")),
        **_offload(said, known),
    }
    if known.host_tables:
        on_host = (surroundings.env or {}).get(_ENGRAM_ON_HOST, "0") in {"1", "true"}
        meant["engram_config"] = {"cpu_offload": on_host}
    return meant


def offloads(said: Mapping[str, Any]) -> bool:
    """Whether whole layers move to the host (utils/offloader.py, OffloaderV2)."""
    return int(said.get("offload_group_size") or -1) > 0


def _offload(said: Mapping[str, Any], known: Checkpoint) -> dict[str, Any]:
    """N of every M layers on the host: the same share of the experts' bytes."""
    if not offloads(said) or not known.parameters:
        return {}
    share = int(said.get("offload_num_in_group") or 1) / int(said["offload_group_size"])
    experts = sum(parameter.bytes for parameter in known.parameters) / GIB
    names = sorted({".".join(parameter.name.rsplit(".", 2)[-2:]) for parameter in known.parameters})
    return {"offload_backend": "uva", "cpu_offload_gb": round(share * experts, 2), "cpu_offload_params": names}
