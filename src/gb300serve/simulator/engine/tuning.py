"""The kernel-tuning cache of a simulated vLLM: its file name for a launch, and its content."""

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

# The options that change the cache's name (vLLM 0.30 to 0.32, measured on CPU configurations); no other option does.
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
    """What a boot loads and saves. `loaded` and `saved` are numbers of kernels."""

    path: str
    """Relative to the cache root, with forward slashes."""
    loaded: int
    saved: int
    seconds: float
    """Virtual time to tune the missing kernels."""
    foreign: bool = False
    """The file was made in another environment: it is neither read nor written."""


def _plain(value: Any) -> Any:
    """Make equal numbers compare equal, and sets of names independent of their order."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_plain(item) for item in value]
        return sorted(items) if all(isinstance(item, str) for item in items) else items
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def identity_key(options: Mapping[str, Any], *, schedule: bool) -> str:
    """Everything that changes the name, as text. Only measured boots show whether the schedule changes it, too."""
    values = {name: _plain(options[name]) for name in CHANGES_NAME if options.get(name) is not None}
    drafts = dict(options.get("speculative_config") or {})
    tiers = drafts.pop(SCHEDULE, None)
    values["speculative_config"] = _plain(drafts)
    if schedule:
        values[SCHEDULE] = _plain(tiers)
    return json.dumps(values, sort_keys=True)


def _complete_name(recorded: str) -> str:
    """64 digits from a recorded name, which has only the beginning and perhaps the end."""
    begin, _, end = recorded.partition("…")
    filler = hashlib.sha256(recorded.encode()).hexdigest()
    return begin + filler[len(begin) : 64 - len(end)] + end


def find_recorded_boot(checkpoint: Checkpoint, options: Mapping[str, Any]) -> MeasuredBoot | None:
    """The measured boot with exactly these settings, if the name of its cache was recorded."""
    wanted = identity_key(options, schedule=True)
    boots = (boot for boot in checkpoint.boots if boot.figures.get("autotune"))
    return next((boot for boot in boots if identity_key(boot.settings, schedule=True) == wanted), None)


def cache_identity(checkpoint: Checkpoint, options: Mapping[str, Any]) -> str:
    """The name of the cache: the recorded one, or a stable hash of everything that changes it."""
    boot = find_recorded_boot(checkpoint, options)
    if boot is not None:
        return _complete_name(boot.figures["autotune"])
    return hashlib.sha256(identity_key(options, schedule=False).encode()).hexdigest()


def cache_path(checkpoint: Checkpoint, name: str, version: str) -> str:
    """The file of a name, relative to the cache root."""
    tuned = checkpoint.autotune
    return str(set_path(tuned.flashinfer, tuned.arch, name, version))


def stored_configs(root: Path, path: str) -> int:
    """The number of kernels in a file below the cache root; 0 if it is missing or damaged."""
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
    """FlashInfer's format: the environment, then runner and tactic for each operation and shape."""
    name, environment = (
        path.parent.name,
        {"flashinfer_version": path.parts[1], "cuda_version": "13.0", "cublas_version": "13.0.0.19"},
    )
    best = int(hashlib.sha256(name.encode()).hexdigest()[:4], 16)  # no two tunings choose the same tactics
    entries = {
        f"('flashinfer::trtllm_fp4_block_scale_moe', 'MoERunner', ({2 ** (index % 14)}, {index}))": [
            "MoERunner",
            (best + index) % 61,
        ]
        for index in range(configs)
    }
    return {"_metadata": {**environment, "cudnn_version": "91200", "gpu": "NVIDIA GB300"}, **entries}


def measured_caches(checkpoint: Checkpoint, version: str) -> dict[str, int]:
    """The cache files of every measured boot: number of kernels by path."""
    boots = (boot for boot in checkpoint.boots if boot.figures.get("autotune") and boot.variant is None)
    return {
        cache_path(checkpoint, _complete_name(boot.figures["autotune"]), version): boot.figures["configs"]
        for boot in boots
    }


def _variant_boot(settings: Settings) -> MeasuredBoot | None:
    variant = settings.demand.variant
    return next((boot for boot in settings.checkpoint.boots if variant and boot.variant == variant), None)


def simulate_tuning(settings: Settings, stored: int | None) -> SimulatedTuning:
    """What this boot does with `stored` kernels in its file; None: as if the reference Station had tuned before."""
    checkpoint, options = settings.checkpoint, settings.options
    path = cache_path(checkpoint, cache_identity(checkpoint, options), settings.environment.version)
    known = find_recorded_boot(checkpoint, options)
    configs = int(known.figures["configs"]) if known else checkpoint.autotune.configs
    if stored is None:
        stored = configs if known or not checkpoint.boots else 0
    patched = _variant_boot(settings)
    wanted = int(patched.figures.get("saved_configs", configs)) if patched else configs
    if stored >= wanted:
        return SimulatedTuning(path, stored, stored, 0.0)
    partial = patched.figures.get("tuning_seconds") if patched and stored else None
    return SimulatedTuning(path, stored, wanted, float(partial or checkpoint.autotune.tuning_seconds))
