"""What the engine says of its settings: the banner, the arguments that are not defaults, the resolved configuration."""

from collections.abc import Mapping
from typing import Any

from gb300serve.engines.shipped import tables_for
from gb300serve.simulator.engine_settings import Settings
from gb300serve.simulator.engine_tape import API, CORE, EventTimeline

_BANNER = (
    "",
    "       █     █     █▄   ▄█",
    " ▄▄ ▄█ █     █     █ ▀▄▀ █  version {version}",
    "  █▄█▀ █     █     █     █  model   {model}",
    "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀",
    "",
)
# From the engine process's first line to its ranks.
ENGINE_SECONDS = 0.4
_CLASSES = {"engram_config": "EngramConfig"}


def _shown(name: str, value: Any) -> str:
    """Python's repr of one argument as the engine holds it: JSON of a configuration class is an object of it."""
    if name == "api_key":
        return "'***'"
    if name in _CLASSES and isinstance(value, Mapping):
        fields = ", ".join(f"{key}={item!r}" for key, item in value.items())
        return f"{_CLASSES[name]}({fields})"
    if name == "served_model_name":
        return repr([value] if isinstance(value, str) else list(value))
    return repr(value)


def arguments(settings: Settings) -> str:
    """The dictionary of `non-default args`: the model first, then what was said and is not the default."""
    table = tables_for("vllm", settings.surroundings.version).tables[-1]
    shown = {"model_tag": repr(settings.model), "model": repr(settings.model)}
    for name, value in settings.options.items():
        option = table.find(name)
        if name not in ("model", "model_tag") and (option is None or option.default != value):
            shown[name] = _shown(name, value)
    return "{" + ", ".join(f"{name!r}: {text}" for name, text in shown.items()) + "}"


def greet(tape: EventTimeline, settings: Settings) -> None:
    """Banner (releases only; the day-0 build prints none) and arguments."""
    version = settings.surroundings.version
    if ".dev" not in version:
        banner = "\n".join(_BANNER).format(version=version, model=settings.model)
        tape.log(API, "api_utils.py:347", banner)
    tape.log(API, "api_utils.py:286", f"non-default args: {arguments(settings)}")


def engine_configuration(settings: Settings) -> str:
    """The line with which the engine process begins."""
    options, checkpoint = settings.options, settings.checkpoint
    drafts = options.get("speculative_config")
    speculation = "None"
    if isinstance(drafts, Mapping):
        method, tokens = drafts.get("method"), drafts.get("num_speculative_tokens")
        draft_model = drafts.get("model", settings.model)
        speculation = f"SpeculativeConfig(method={method!r}, model={draft_model!r}, num_spec_tokens={tokens})"
    parts = {
        "model": repr(settings.model),
        "speculative_config": speculation,
        "tokenizer": repr(settings.model),
        "skip_tokenizer_init": "False",
        "tokenizer_mode": "auto",
        "revision": "None",
        "tokenizer_revision": "None",
        "trust_remote_code": str(bool(options.get("trust_remote_code"))),
        "dtype": "torch.bfloat16",
        "max_seq_len": str(settings.max_model_len),
        "download_dir": "None",
        "load_format": "auto",
        "tensor_parallel_size": str(options.get("tensor_parallel_size", 1)),
        "pipeline_parallel_size": "1",
        "data_parallel_size": "1",
        "disable_custom_all_reduce": "False",
        "quantization": str(checkpoint.quantization),
        "enforce_eager": str(bool(options.get("enforce_eager"))),
        "kv_cache_dtype": str(options.get("kv_cache_dtype", "auto")),
        "device_config": "cuda",
        "seed": "0",
        "served_model_name": settings.served_names[0],
        "enable_prefix_caching": "True",
        "enable_chunked_prefill": "True",
    }
    shown = ", ".join(f"{name}={value}" for name, value in parts.items())
    return f"Initializing a V1 LLM engine (v{settings.surroundings.version}) with config: {shown}"


def resolve(tape: EventTimeline, settings: Settings) -> None:
    """Model, length and prefill budget, as the server resolves them."""
    tape.log(API, "model.py:2152", f"Using max model len {settings.max_model_len}")
    budget = settings.max_num_batched_tokens
    tape.log(API, "scheduler.py:311", f"Chunked prefill is enabled with max_num_batched_tokens={budget}.")
    tables = settings.options.get("engram_config")
    if settings.checkpoint.host_tables:
        offloaded = tables.get("cpu_offload", True) if isinstance(tables, Mapping) else True
        resolved = f"EngramConfig(cpu_offload={offloaded}, embedding_across_dp=False, dp_shared_memory=False)"
        tape.log(API, "vllm.py:1490", f"Resolved Engram configuration: {resolved}")


def begin_engine(tape: EventTimeline, settings: Settings) -> None:
    """The engine process's first lines."""
    tape.log(CORE, "core.py:123", engine_configuration(settings))
    tape.wait(ENGINE_SECONDS)
    rendezvous = "distributed_init_method=tcp://127.0.0.1:41873 backend=nccl"
    tape.log(CORE, "parallel_state.py:1906", f"world_size=1 rank=0 local_rank=0 {rendezvous}")
    ranks = "DP rank 0, PP rank 0, PCP rank 0, TP rank 0, EP rank N/A, EPLB rank N/A"
    tape.log(CORE, "parallel_state.py:2350", f"rank 0 in world size 1 is assigned as {ranks}")
