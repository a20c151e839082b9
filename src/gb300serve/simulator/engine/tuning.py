"""The kernel-tuning cache: under which name this launch looks for it, and what lies there."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gb300serve.autotune.sets import InvalidSetError, parse_set, set_path
from gb300serve.core.files import write_atomically
from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot
from gb300serve.simulator.engine.settings import Settings

# Source: vLLM 0.30 to 0.32, measured on CPU configurations; everything else keeps the name.
CHANGES_NAME = (
    "model",
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "cpu_offload_gb",
    "cpu_offload_params",
    "offload_backend",
    "engram_config",
    "kv_cache_dtype",
    "block_size",
    "trust_remote_code",
    "dtype",
    "revision",
    "max_logprobs",
    "generation_config",
    "hf_overrides",
    "enforce_eager",
    "async_scheduling",
    "moe_backend",
    "kernel_config",
    "attention_backend",
    "attention_config",
    "compilation_config",
    "cudagraph_capture_sizes",
    "max_cudagraph_capture_size",
)
SCHEDULE = "num_speculative_tokens_per_batch_size"


@dataclass(frozen=True, slots=True)
class SimulatedTuning:
    """What a boot finds: the file, how many kernels are loaded from it, how many there are when it ends."""

    path: str
    """Below the cache root, with forward slashes."""
    loaded: int
    saved: int
    seconds: float
    """Virtual time that tuning the missing ones takes."""
    foreign: bool = False
    """The file was made in another environment: it is ignored and not written either."""


def _plain(value: Any) -> Any:
    """Numbers that are equal compare equal, and sets of names do not depend on their order."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_plain(item) for item in value]
        return sorted(items) if all(isinstance(item, str) for item in items) else items
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def key(options: Mapping[str, Any], *, schedule: bool) -> str:
    """Everything that changes the name, as text that compares. Whether the schedule does is known from boots only."""
    named = {name: _plain(options[name]) for name in CHANGES_NAME if options.get(name) is not None}
    drafts = dict(options.get("speculative_config") or {})
    tiers = drafts.pop(SCHEDULE, None)
    named["speculative_config"] = _plain(drafts)
    if schedule:
        named[SCHEDULE] = _plain(tiers)
    return json.dumps(named, sort_keys=True)


def _whole(recorded: str) -> str:
    """64 digits from a name of which the record keeps the beginning and perhaps the end."""
    begin, _, end = recorded.partition("…")
    filler = hashlib.sha256(recorded.encode()).hexdigest()
    return begin + filler[len(begin) : 64 - len(end)] + end


def recorded(checkpoint: Checkpoint, options: Mapping[str, Any]) -> MeasuredBoot | None:
    """The measured boot with exactly these settings, when its name was recorded."""
    wanted = key(options, schedule=True)
    named = (boot for boot in checkpoint.boots if boot.figures.get("autotune"))
    return next((boot for boot in named if key(boot.settings, schedule=True) == wanted), None)


def identity(checkpoint: Checkpoint, options: Mapping[str, Any]) -> str:
    """The name of the cache: a recorded one, else a stable hash of what changes it."""
    boot = recorded(checkpoint, options)
    if boot is not None:
        return _whole(boot.figures["autotune"])
    return hashlib.sha256(key(options, schedule=False).encode()).hexdigest()


def cache_path(checkpoint: Checkpoint, name: str, version: str) -> str:
    """The file of a name, below the cache root."""
    tuned = checkpoint.autotune
    return str(set_path(tuned.flashinfer, tuned.arch, name, version))


def stored_configs(root: Path, path: str) -> int:
    """How many kernels a file below the cache root holds; 0 when it is absent or damaged."""
    try:
        return parse_set((root / path).read_bytes()).configs
    except (OSError, InvalidSetError):
        return 0


def store_configs(root: Path, path: str, configs: int) -> None:
    """Write the file as a whole, so that an interrupted tuning leaves nothing. OSError when it cannot be written."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps(_content(PurePosixPath(path), configs)).encode("utf-8"))


def _content(path: PurePosixPath, configs: int) -> dict[str, Any]:
    """As FlashInfer writes it: the environment, then runner and tactic for each operation and shape."""
    name, environment = (
        path.parent.name,
        {"flashinfer_version": path.parts[1], "cuda_version": "13.0", "cublas_version": "13.0.0.19"},
    )
    best = int(hashlib.sha256(name.encode()).hexdigest()[:4], 16)  # two tunings never choose alike
    entries = {
        f"('flashinfer::trtllm_fp4_block_scale_moe', 'MoERunner', ({2 ** (index % 14)}, {index}))": [
            "MoERunner",
            (best + index) % 61,
        ]
        for index in range(configs)
    }
    return {"_metadata": {**environment, "cudnn_version": "91200", "gpu": "NVIDIA GB300"}, **entries}


def seeds(checkpoint: Checkpoint, version: str) -> dict[str, int]:
    """The files that the reference Station has, path to kernels: what was tuned for every recorded boot."""
    found: dict[str, int] = {}
    for boot in checkpoint.boots:
        if boot.figures.get("autotune") and boot.variant is None:
            found[cache_path(checkpoint, _whole(boot.figures["autotune"]), version)] = boot.figures["configs"]
    return found


def _variant_boot(settings: Settings) -> MeasuredBoot | None:
    variant = settings.demand.variant
    return next((boot for boot in settings.checkpoint.boots if variant and boot.variant == variant), None)


def tuning(settings: Settings, stored: int | None) -> SimulatedTuning:
    """What this boot does with `stored` kernels in its file; None: as if the reference Station had tuned it before."""
    checkpoint, options = settings.checkpoint, settings.options
    path = cache_path(checkpoint, identity(checkpoint, options), settings.surroundings.version)
    known = recorded(checkpoint, options)
    configs = int(known.figures["configs"]) if known else checkpoint.autotune.configs
    if stored is None:
        stored = configs if known or not checkpoint.boots else 0
    patched = _variant_boot(settings)
    wanted = int(patched.figures.get("saved_configs", configs)) if patched else configs
    if stored >= wanted:
        return SimulatedTuning(path, stored, stored, 0.0)
    partial = patched.figures.get("tuning_seconds") if patched and stored else None
    return SimulatedTuning(path, stored, wanted, float(partial or checkpoint.autotune.tuning_seconds))
