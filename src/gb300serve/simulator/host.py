"""The host of the simulated Station: its hardware as the host checks read it, and its kernel-tuning caches."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gb300serve.autotune.sets import InvalidSetError, parse_set, set_path
from gb300serve.core.files import write_atomically
from gb300serve.core.values import Missing
from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot, known_checkpoints
from gb300serve.host.facts import ListeningSocket
from gb300serve.host.linux import UNLIMITED, Limit
from gb300serve.simulator.engine.settings import DEFAULT_VERSION, Settings

# The options that change the cache's name (vLLM 0.30 to 0.32, measured on CPU configurations); no other option does.
CHANGES_NAME = (
    "model", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "cpu_offload_gb", "cpu_offload_params",
    "offload_backend", "engram_config", "kv_cache_dtype", "block_size", "trust_remote_code", "dtype", "revision",
    "max_logprobs", "generation_config", "hf_overrides", "enforce_eager", "async_scheduling", "moe_backend",
    "kernel_config", "attention_backend", "attention_config", "compilation_config", "cudagraph_capture_sizes",
    "max_cudagraph_capture_size",
)  # fmt: skip
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


def find_recorded_boot(
    checkpoint: Checkpoint, options: Mapping[str, Any], version: str | None = None, variant: str | None = None
) -> MeasuredBoot | None:
    """The measured boot with exactly these settings, if the name of its cache was recorded.

    Of boots with several engine versions, only one with the same version counts. The same patch is preferred.
    """
    wanted = identity_key(options, schedule=True)
    boots = (boot for boot in checkpoint.boots if boot.figures.get("autotune"))
    same = [boot for boot in boots if identity_key(boot.settings, schedule=True) == wanted]
    if len({boot.engine_version for boot in same}) > 1:
        same = [boot for boot in same if boot.engine_version == version]
    return min(same, key=lambda boot: boot.variant != variant, default=None)


def cache_identity(checkpoint: Checkpoint, options: Mapping[str, Any], version: str | None = None) -> str:
    """The name of the cache: the recorded one, or a stable hash of everything that changes it."""
    if (boot := find_recorded_boot(checkpoint, options, version)) is not None:
        return _complete_name(boot.figures["autotune"])
    return hashlib.sha256(identity_key(options, schedule=False).encode()).hexdigest()


def cache_path(checkpoint: Checkpoint, name: str, version: str) -> str:
    """The file of a name, relative to the cache root."""
    return str(set_path(checkpoint.autotune.flashinfer, checkpoint.autotune.arch, name, version))


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
    environment = {"flashinfer_version": path.parts[1], "cuda_version": "13.0", "cublas_version": "13.0.0.19"}
    best = int(hashlib.sha256(path.parent.name.encode()).hexdigest()[:4], 16)  # no two tunings choose the same tactics
    runner = "'flashinfer::trtllm_fp4_block_scale_moe', 'MoERunner'"
    entries = {f"({runner}, ({2 ** (n % 14)}, {n}))": ["MoERunner", (best + n) % 61] for n in range(configs)}
    return {"_metadata": {**environment, "cudnn_version": "91200", "gpu": "NVIDIA GB300"}, **entries}


def measured_caches(checkpoint: Checkpoint, version: str) -> dict[str, int]:
    """The cache files of every measured boot: number of kernels by path."""
    boots = (boot for boot in checkpoint.boots if boot.figures.get("autotune") and boot.figures.get("configs"))
    return {
        cache_path(checkpoint, _complete_name(boot.figures["autotune"]), version): boot.figures["configs"]
        for boot in boots
    }


def simulate_tuning(settings: Settings, stored: int | None) -> SimulatedTuning:
    """What this boot does with `stored` kernels in its file; None: as if the reference Station had tuned before."""
    checkpoint, options = settings.checkpoint, settings.options
    version, variant = settings.environment.version, settings.memory_request.variant
    path = cache_path(checkpoint, cache_identity(checkpoint, options, version), version)
    known = find_recorded_boot(checkpoint, options, version, variant)
    figures = known.figures if known else {}
    configs = int(figures.get("configs", checkpoint.autotune.configs))
    if stored is None:
        stored = configs if figures.get("configs") or not checkpoint.boots else 0
    wanted = int(figures.get("saved_configs", configs)) if known and known.variant == variant else configs
    if stored >= wanted:
        return SimulatedTuning(path, stored, stored, 0.0)
    # A record of a partial tuning says nothing about a whole one.
    applies = ("saved_configs" in figures) == bool(stored) and known is not None and known.variant == variant
    seconds = figures.get("tuning_seconds") if applies else None
    return SimulatedTuning(path, stored, wanted, float(seconds or checkpoint.autotune.tuning_seconds))


GB300_UUID = "GPU-00000000-0000-4000-8000-000000000300"
DISPLAY_UUID = "GPU-00000000-0000-4000-8000-000000004000"

# 256,703 MiB visible and 268,235,309,056 bytes for CUDA, idle. The display GPU is listed first.
_GPUS = f"""\
index, name, uuid, driver_version, memory.total [MiB], memory.reserved [MiB], memory.used [MiB], compute_cap, \
power.limit [W], power.max_limit [W], power.draw [W], clocks_event_reasons.active, mig.mode.current
0, NVIDIA RTX PRO 4000 Blackwell SFF Edition, {DISPLAY_UUID}, 595.84, 24467 MiB, 403 MiB, 41 MiB, 12.0, \
70.00 W, 70.00 W, 9.00 W, 0x0000000000000001, [N/A]
1, NVIDIA GB300, {GB300_UUID}, 595.84, 256703 MiB, 894 MiB, 0 MiB, 10.3, \
1300.00 W, 1300.00 W, 160.00 W, 0x0000000000000001, Disabled
"""
_PROCESSES = "pid, process_name, used_gpu_memory [MiB], gpu_uuid\n"
# 494.5 GiB of Grace memory, of which the owners measured 466 GiB available before a launch.
_FILES = {
    "/proc/driver/nvidia/params": 'CoherentGPUMemoryMode: "driver"\n',
    "/proc/meminfo": "MemTotal: 518520832 kB\nMemAvailable: 488636416 kB\nCached: 4194304 kB\n",
    "/sys/devices/system/node/node0/cpulist": "0-71\n",
}
INFO: Mapping[str, Any] = {
    "ServerVersion": "29.1.3",
    "Architecture": "aarch64",
    "Runtimes": {"nvidia": {}, "runc": {}},
    "DefaultRuntime": "runc",
    "MemTotal": 518520832 * 1024,
}
_FILES_OF_PLANS = Missing("the simulated Station has every file that a plan names", asked=False)


class StationMachine:
    """Implements `host.ports.Machine`. Its ports are those of this machine, read by `listener`."""

    def __init__(self, listener: Callable[[int], ListeningSocket | Missing | None]) -> None:
        self.listener = listener

    def output(self, argv: tuple[str, ...]) -> str | Missing:
        command = " ".join(argv)
        if "--query-gpu=" in command:
            return _GPUS
        return _PROCESSES if "--query-compute-apps=" in command else _FILES_OF_PLANS

    def read(self, path: str) -> str | Missing:
        return _FILES.get(path, _FILES_OF_PLANS)

    def _unknown(self, *_args: object, **_kwargs: object) -> Missing:
        return _FILES_OF_PLANS

    begin = entry = space = sha256 = _unknown

    def names(self, directory: str) -> tuple[str, ...] | Missing:
        return ("node0",) if directory == "/sys/devices/system/node" else _FILES_OF_PLANS

    def memlock(self) -> Limit:
        return Limit(UNLIMITED, UNLIMITED)

    def program(self, name: str) -> str | None:  # noqa: ARG002 - of the protocol
        return None


def seed_caches(root: Path, engine_version: str | None) -> None:
    """Write the cache files of every measured boot, once per engine version: a deleted file stays deleted."""
    version = engine_version or DEFAULT_VERSION
    marker = root / f"seeded-{version.replace('/', '_')}"
    if marker.exists():
        return
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    for checkpoint in known_checkpoints():
        for path, configs in measured_caches(checkpoint, version).items():
            if not (root / path).exists():
                store_configs(root, path, configs)
    marker.touch(mode=0o600)
