"""What a tuning set depends on: the effect of each changed field of a recipe on the identity, its directory's name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from gb300serve.autotune.sets import MOUNT
from gb300serve.core.values import compact_json
from gb300serve.engines.tables import version_key
from gb300serve.recipe.model import PLAN_SECTIONS

_ABSENT = object()

# They describe how a recipe was resolved, not the launch.
_NOT_COMPARED = frozenset({"format", "extends"})


@dataclass(frozen=True, slots=True)
class Change:
    """One field. `before` and `after` are the values as written, None if absent."""

    path: str
    before: Any
    after: Any

    @property
    def section(self) -> str:
        return self.path.partition(".")[0]

    @property
    def in_plan(self) -> bool:
        """Whether the plan is compiled from the field. The other fields are the release's record."""
        return self.section in PLAN_SECTIONS


def changes(before: dict[str, Any], after: dict[str, Any]) -> tuple[Change, ...]:
    """All fields that differ, in the order of `before`, then those that only `after` has."""
    return tuple(change for change in _walk(before, after, ()) if change.section not in _NOT_COMPARED)


def _walk(before: Any, after: Any, path: tuple[str, ...]) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (*before, *(key for key in after if key not in before)):
            yield from _walk(before.get(key, _ABSENT), after.get(key, _ABSENT), (*path, key))
    elif after is _ABSENT and isinstance(before, dict) and before:
        yield from _walk(before, {}, path)
    elif before is _ABSENT and isinstance(after, dict) and after:
        yield from _walk({}, after, path)
    elif _spelling(before) != _spelling(after):
        yield _change(path, before, after)


def _change(path: tuple[str, ...], before: Any, after: Any) -> Change:
    keys = (f'["{key}"]' if "." in key else key for key in path)
    return Change(".".join(keys), None if before is _ABSENT else before, None if after is _ABSENT else after)


def _spelling(value: Any) -> str | None:
    """Values are equal if they are written the same way: `0.9` and `0.90` compile to different arguments."""
    return None if value is _ABSENT else compact_json(value)


IdentityEffect = Literal["keeps", "changes", "unknown"]


@dataclass(frozen=True, slots=True)
class Effect:
    """`launch` describes the field, `identity` its effect on the tuning cache's identity, `field` is its path."""

    launch: str
    identity: IdentityEffect
    reason: str
    field: str = ""


_BOTH = "the engine's source and the recorded boots agree"
_SOURCE = "by the engine's source"
_OFFLOAD = "the engine's source includes it in the identity, the recorded boots do not"
_SCHEDULE = "some schedules changed it and others did not: only a recorded boot can tell"
_NOT_READ = "whether it is part of the identity is unknown"

# Option, or option and key: description, effect on the identity, source.
_OPTIONS: dict[str, tuple[str, IdentityEffect, str]] = {
    "max_num_seqs": ("concurrent requests", "changes", _BOTH),
    "max_model_len": ("longest context", "changes", _BOTH),
    "kv_cache_dtype": ("format of the KV cache", "changes", _BOTH),
    "cudagraph_capture_sizes": ("batch sizes with a CUDA graph", "changes", _BOTH),
    "speculative_config.num_speculative_tokens": ("maximum draft tokens", "changes", _BOTH),
    "gpu_memory_utilization": ("share of GPU memory for the engine", "keeps", _BOTH),
    "long_prefill_token_threshold": ("prompt length that counts as long", "keeps", _BOTH),
    "cpu_offload_gb": ("GiB of weights to offload to Grace, in whole parameters", "unknown", _OFFLOAD),
    "async_scheduling": ("asynchronous scheduling", "unknown", _OFFLOAD),
    "speculative_config.num_speculative_tokens_per_batch_size": (
        "draft tokens per batch size", "unknown", _SCHEDULE,
    ),
    "speculative_config.method": ("speculation method", "changes", _SOURCE),
    "model": ("the model's path in the container", "changes", _SOURCE),
    "model_tag": ("the model's path in the container", "changes", _SOURCE),
    "max_num_batched_tokens": ("tokens per step", "changes", _SOURCE),
    "offload_backend": ("offload backend", "changes", _SOURCE),
    "cpu_offload_params": ("weights that may be offloaded to Grace", "changes", _SOURCE),
    "engram_config": ("location of the lookup tables", "changes", _SOURCE),
    "block_size": ("tokens per KV cache block", "changes", _SOURCE),
    "trust_remote_code": ("code from the checkpoint", "changes", _SOURCE),
    "dtype": ("format of the activations", "changes", _SOURCE),
    "revision": ("revision of the model", "changes", _SOURCE),
    "max_logprobs": ("maximum log probabilities", "changes", _SOURCE),
    "generation_config": ("sampling defaults", "changes", _SOURCE),
    "hf_overrides": ("overrides of the model configuration", "changes", _SOURCE),
    "enforce_eager": ("no CUDA graphs", "changes", _SOURCE),
    "moe_backend": ("kernels of the experts", "changes", _SOURCE),
    "linear_backend": ("kernels of linear layers", "changes", _SOURCE),
    "served_model_name": ("the model name that clients use", "keeps", _SOURCE),
    "host": ("listen address", "keeps", _SOURCE),
    "port": ("listen port", "keeps", _SOURCE),
    "api_key": ("API key of clients", "keeps", _SOURCE),
    "tool_call_parser": ("parser of tool calls", "keeps", _SOURCE),
    "reasoning_parser": ("parser of reasoning", "keeps", _SOURCE),
    "enable_auto_tool_choice": ("automatic tool choice", "keeps", _SOURCE),
    "enable_prefix_caching": ("prefix caching", "keeps", _SOURCE),
    "seed": ("sampling seed", "keeps", _SOURCE),
    "safetensors_load_strategy": ("loading of weights", "keeps", _SOURCE),
    "disable_log_stats": ("statistics in the log", "keeps", _SOURCE),
    "performance_mode": ("performance mode", "keeps", _SOURCE),
    "enable_flashinfer_autotune": ("kernel tuning", "keeps", _SOURCE),
}  # fmt: skip

# Other sections, the more specific first.
_SECTIONS: tuple[tuple[str, Effect], ...] = (
    ("image.tag", Effect("the image's tag", "keeps", "the digest or id identifies the image")),
    ("image", Effect("another image", "changes", "each image has its own tuning libraries")),
    ("model.repo", Effect("another model", "unknown", _NOT_READ)),
    ("model", Effect("the model's files on the host", "keeps", "only the path in the container counts")),
    ("nodes", Effect("another number of machines", "unknown", "no boot over several machines is recorded")),
    ("models", Effect("other models", "keeps", "only paths in the container count")),
    ("container.env", Effect("a variable of the container", "keeps", "variables are not part of the identity")),
    ("container.mounts", Effect("another mount", "keeps", "boots with patched files had the same identity")),
    ("container", Effect("another container option", "keeps", "container options are not part of the identity")),
    ("engine.version", Effect("another engine version", "changes", "each image has its own tuning libraries")),
    ("engine.options", Effect("another engine argument", "unknown", _NOT_READ)),
    ("engine.name", Effect("another engine", "changes", "each engine has its own tuning")),
    ("engine", Effect("other engine arguments", "unknown", _NOT_READ)),
)
# No engine tunes kernels for these options.
_NEVER_TUNED = ("host", "port", "api_key", "served_model_name", "tool_call_parser", "reasoning_parser")


def effect_of(change: Change, engine_version: str | None, engine: str = "vllm") -> Effect:
    """The effect of one changed field, without the others."""
    effect = _effect(change, engine_version) if engine == "vllm" else _other_engine_effect(change, engine)
    return replace(effect, field=change.path)


def _other_engine_effect(change: Change, engine: str) -> Effect:
    """The tuning of other engines was not studied, and none of their boots is recorded."""
    option = change.path.removeprefix("engine.options.")
    if option in _NEVER_TUNED:
        return Effect(_OPTIONS[option][0], "keeps", "no kernel is tuned for it")
    launch = next(effect.launch for section, effect in _SECTIONS if f"{change.path}.".startswith(f"{section}."))
    return Effect(launch, "unknown", f"the tuning of {engine} is not recorded")


def _effect(change: Change, engine_version: str | None) -> Effect:
    if change.path.startswith("engine.options."):
        option = _option(change.path.removeprefix("engine.options."))
        if option is not None:
            return _for_version(Effect(*option), engine_version)
    if change.path == "container.mounts" and _tuning_source(change.before) != _tuning_source(change.after):
        return Effect("another directory for the tuning cache", "unknown", "its content is unknown")
    if change.path in _NIGHTLY and _is_nightly(engine_version):
        return Effect("another image", "unknown", "two nightly builds had the same identity, others had not")
    if change.path == "container.env.VLLM_LOGGING_LEVEL":
        return Effect("the engine's log level", "keeps", "the log level is not part of the identity")
    if change.path.startswith("container.env.VLLM_") and not _is_verified(engine_version):
        return Effect("a variable of the engine", "unknown", "vLLM 0.29 includes every VLLM_ variable in the identity")
    return next(effect for section, effect in _SECTIONS if f"{change.path}.".startswith(f"{section}."))


_NIGHTLY = ("image.digest", "image.id", "engine.version")


def _is_nightly(version: str | None) -> bool:
    """Whether the version is that of a nightly, such as `0.29.1rc1.dev9+g2671fedfc`."""
    return version is not None and "rc" in version and ".dev" in version


def _option(path: str) -> tuple[str, IdentityEffect, str] | None:
    keys = path.split(".")
    return _OPTIONS.get(".".join(keys[:2])) or _OPTIONS.get(keys[0])


def _for_version(effect: Effect, version: str | None) -> Effect:
    """The source was read for releases; for another build, only what recorded boots confirm counts."""
    if _is_verified(version):
        return Effect(effect.launch, "changes", _SOURCE) if effect.reason == _OFFLOAD else effect
    if effect.identity == "changes" and effect.reason == _SOURCE:
        return replace(effect, identity="unknown", reason="part of the identity in releases, unknown for this build")
    return effect


def _is_verified(version: str | None) -> bool:
    """Whether the identity was studied and measured for this version: the releases 0.30 to 0.33."""
    key = version_key(version or "")
    first, beyond = version_key("0.30.0"), version_key("0.34.0")
    return key is not None and first is not None and beyond is not None and first <= key < beyond


def _tuning_source(mounts: object) -> object:
    items = [item for item in mounts if isinstance(item, dict)] if isinstance(mounts, list) else []
    return next((item.get("source") or item.get("volume") for item in items if item.get("target") == MOUNT), None)


def identity_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> Effect | None:
    """The first change between two resolved recipes that is known to give another identity."""
    section = after.get("engine")
    engine = section if isinstance(section, Mapping) else {}
    version, name = engine.get("version"), engine.get("name", "vllm")
    launched = (change for change in changes(dict(before), dict(after)) if change.in_plan)
    effects = (effect_of(change, version if isinstance(version, str) else None, str(name)) for change in launched)
    return next((effect for effect in effects if effect.identity == "changes"), None)
