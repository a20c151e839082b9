"""What a changed field does to the launch, and whether it can change the identity of the tuning cache.

Two sources: the engine's source of 0.30 to 0.33 (the identity is a hash of its configuration, measured there), and the
record of the day-zero build's boots. They disagree on the GiB to offload and on asynchronous scheduling.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from gb300serve.core.values import compact_json
from gb300serve.engines.tables import version_key
from gb300serve.recipe.model import PLAN_SECTIONS

_ABSENT = object()

# How a resolved recipe came about, not what it is.
_NOT_COMPARED = frozenset({"format", "extends"})


@dataclass(frozen=True, slots=True)
class Change:
    """One field. `before` and `after` are values as written, None where it is absent."""

    path: str
    before: Any
    after: Any

    @property
    def section(self) -> str:
        return self.path.partition(".")[0]

    @property
    def in_plan(self) -> bool:
        """Is the plan compiled from it? The rest is the release's record."""
        return self.section in PLAN_SECTIONS


def changes(before: dict[str, Any], after: dict[str, Any]) -> tuple[Change, ...]:
    """Every differing field, in the order of `before`, then what only `after` has."""
    return tuple(change for change in _walk(before, after, ()) if change.section not in _NOT_COMPARED)


def _walk(before: Any, after: Any, path: tuple[str, ...]) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (*before, *(key for key in after if key not in before)):
            yield from _walk(before.get(key, _ABSENT), after.get(key, _ABSENT), (*path, key))
    elif isinstance(before, dict) and after is _ABSENT:
        yield from _walk(before, {}, path) if before else iter((_change(path, before, after),))
    elif isinstance(after, dict) and before is _ABSENT:
        yield from _walk({}, after, path) if after else iter((_change(path, before, after),))
    elif _spelling(before) != _spelling(after):
        yield _change(path, before, after)


def _change(path: tuple[str, ...], before: Any, after: Any) -> Change:
    words = (f'["{word}"]' if "." in word else word for word in path)
    return Change(".".join(words), _shown(before), _shown(after))


def _shown(value: Any) -> Any:
    return None if value is _ABSENT else value


def _spelling(value: Any) -> str | None:
    """Two values are the same when they are written alike: `0.9` and `0.90` compile to different words."""
    return None if value is _ABSENT else compact_json(value)


IdentityEffect = Literal["keeps", "changes", "unknown"]


@dataclass(frozen=True, slots=True)
class Effect:
    """`launch` is what the field does; `touch` and `reason` speak of the tuning cache's identity. `field`: its path."""

    launch: str
    touch: IdentityEffect
    reason: str
    field: str = ""


_BOTH = "the engine's source and the boots on record agree"
_SOURCE = "as the engine's source has it"
_OFFLOAD = "the engine's source puts it into the identity, the record of boots says that it stays out"
_SCHEDULE = "some breakpoints changed it and others did not: only a recorded boot tells"
_NOT_READ = "it is not known whether it is part of the identity"

# Option, or option and key inside it: what it is, whether the identity depends on it, by whom that is said.
_OPTIONS: dict[str, tuple[str, IdentityEffect, str]] = {
    "max_num_seqs": ("requests at once", "changes", _BOTH),
    "max_model_len": ("longest context", "changes", _BOTH),
    "kv_cache_dtype": ("format of the KV cache", "changes", _BOTH),
    "cudagraph_capture_sizes": ("batch sizes with a graph", "changes", _BOTH),
    "speculative_config.num_speculative_tokens": ("tokens drafted at most", "changes", _BOTH),
    "gpu_memory_utilization": ("share of the GPU given to the engine", "keeps", _BOTH),
    "long_prefill_token_threshold": ("how long a prompt may hold up short ones", "keeps", _BOTH),
    "cpu_offload_gb": ("GiB of weights that move to Grace, in whole parameters", "unknown", _OFFLOAD),
    "async_scheduling": ("scheduling ahead of the GPU", "unknown", _OFFLOAD),
    "speculative_config.num_speculative_tokens_per_batch_size": (
        "tokens drafted at each batch size", "unknown", _SCHEDULE,
    ),
    "speculative_config.method": ("how tokens are drafted", "changes", _SOURCE),
    "model": ("the model's path in the container", "changes", _SOURCE),
    "model_tag": ("the model's path in the container", "changes", _SOURCE),
    "max_num_batched_tokens": ("tokens in one step", "changes", _SOURCE),
    "offload_backend": ("how weights are offloaded", "changes", _SOURCE),
    "cpu_offload_params": ("which weights may move to Grace", "changes", _SOURCE),
    "engram_config": ("where the lookup tables lie", "changes", _SOURCE),
    "block_size": ("tokens in a block of the KV cache", "changes", _SOURCE),
    "trust_remote_code": ("code from the checkpoint", "changes", _SOURCE),
    "dtype": ("format of the activations", "changes", _SOURCE),
    "revision": ("revision of the model", "changes", _SOURCE),
    "max_logprobs": ("log probabilities at most", "changes", _SOURCE),
    "generation_config": ("defaults of sampling", "changes", _SOURCE),
    "hf_overrides": ("the model's own configuration", "changes", _SOURCE),
    "enforce_eager": ("without graphs", "changes", _SOURCE),
    "moe_backend": ("kernels of the experts", "changes", _SOURCE),
    "linear_backend": ("kernels of linear layers", "changes", _SOURCE),
    "served_model_name": ("the name that clients ask for", "keeps", _SOURCE),
    "host": ("the address that it listens on", "keeps", _SOURCE),
    "port": ("the port that it listens on", "keeps", _SOURCE),
    "api_key": ("the key that clients show", "keeps", _SOURCE),
    "tool_call_parser": ("how tool calls are read", "keeps", _SOURCE),
    "reasoning_parser": ("how thinking is told from the answer", "keeps", _SOURCE),
    "enable_auto_tool_choice": ("tool calls as the model likes", "keeps", _SOURCE),
    "enable_prefix_caching": ("reuse of common prefixes", "keeps", _SOURCE),
    "seed": ("the seed of sampling", "keeps", _SOURCE),
    "safetensors_load_strategy": ("how weights are loaded", "keeps", _SOURCE),
    "disable_log_stats": ("figures in the log", "keeps", _SOURCE),
    "performance_mode": ("what it is tuned for", "keeps", _SOURCE),
    "enable_flashinfer_autotune": ("kernel tuning at all", "keeps", _SOURCE),
}  # fmt: skip

# Sections beside the options, the more special first.
_PLACES: tuple[tuple[str, Effect], ...] = (
    ("image.tag", Effect("the image's tag", "keeps", "digest or id name the image")),
    ("image", Effect("another image", "changes", "images have their own tuning libraries")),
    ("model.repo", Effect("another model", "unknown", _NOT_READ)),
    ("model", Effect("the model's files on the host", "keeps", "only its path in the container counts")),
    ("models", Effect("other models", "keeps", "only paths in the container count")),
    ("container.env", Effect("a variable of the container", "keeps", "variables are no part of it")),
    ("container.mounts", Effect("what is mounted", "keeps", "files over the image were seen to leave it")),
    ("container", Effect("another container option", "keeps", "container options are no part of it")),
    ("engine.version", Effect("another engine version", "changes", "images have their own tuning libraries")),
    ("engine.options", Effect("another engine argument", "unknown", _NOT_READ)),
    ("engine.name", Effect("another engine", "changes", "engines tune for themselves")),
    ("engine", Effect("other words for the engine", "unknown", _NOT_READ)),
)
_TUNED = "/root/.cache/vllm"


# What no engine tunes for.
_NEVER_TUNED = ("host", "port", "api_key", "served_model_name", "tool_call_parser", "reasoning_parser")


def effect_of(change: Change, engine_version: str | None, engine: str = "vllm") -> Effect:
    """What the change of one field does, as far as the field alone tells."""
    found = _effect(change, engine_version) if engine == "vllm" else _untold(change, engine)
    return replace(found, field=change.path)


def _untold(change: Change, engine: str) -> Effect:
    """Of another engine nobody read what it tunes, and no boot is on record."""
    option = change.path.removeprefix("engine.options.")
    if option in _NEVER_TUNED:
        return Effect(_OPTIONS[option][0], "keeps", "nothing is tuned for it")
    launch = next(effect.launch for place, effect in _PLACES if f"{change.path}.".startswith(f"{place}."))
    return Effect(launch, "unknown", f"what {engine} tunes is not on record")


def _effect(change: Change, engine_version: str | None) -> Effect:
    if change.path.startswith("engine.options."):
        found = _option(change.path.removeprefix("engine.options."))
        if found is not None:
            return _judged(Effect(*found), engine_version)
    if change.path == "container.mounts" and _tuning_source(change.before) != _tuning_source(change.after):
        return Effect("another directory for the tuning cache", "unknown", "what that directory holds is not known")
    if change.path.startswith("container.env.VLLM_") and not _read(engine_version):
        return Effect("a variable of the engine", "unknown", "vLLM 0.29 makes every VLLM_ variable part of it")
    return next(effect for place, effect in _PLACES if f"{change.path}.".startswith(f"{place}."))


def _option(path: str) -> tuple[str, IdentityEffect, str] | None:
    words = path.split(".")
    return _OPTIONS.get(".".join(words[:2])) or _OPTIONS.get(words[0])


def _judged(effect: Effect, version: str | None) -> Effect:
    """The source was read for releases; of another build it proves nothing that the boots do not confirm."""
    if _read(version):
        return Effect(effect.launch, "changes", _SOURCE) if effect.reason == _OFFLOAD else effect
    if effect.touch == "changes" and effect.reason == _SOURCE:
        return Effect(
            effect.launch, "unknown", "releases make it part of the identity; of this build that is not known"
        )
    return effect


def _read(version: str | None) -> bool:
    """Whether the identity was read and measured for this version: the releases 0.30 to 0.33."""
    key = version_key(version or "")
    first, beyond = version_key("0.30.0"), version_key("0.34.0")
    return key is not None and first is not None and beyond is not None and first <= key < beyond


def _tuning_source(mounts: object) -> object:
    found = mounts if isinstance(mounts, list) else []
    return next((one.get("source") for one in found if isinstance(one, dict) and one.get("target") == _TUNED), None)
