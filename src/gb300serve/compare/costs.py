"""The cost of changing from one release to another: restart, tuning, memory, time; and the evidence of both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gb300serve.autotune.sets import MOUNT, is_same_identity, short_identity
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.values import compact_json
from gb300serve.engines.tables import version_key
from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot
from gb300serve.fit.memory import MemoryPlan, request_of_boot
from gb300serve.fit.request import MemoryRequest
from gb300serve.recipe.model import PLAN_SECTIONS, EvidenceSection

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


Autotune = Literal["same", "new", "unknown"]
# Options that affect the identity but not the memory; the model's path is compared separately.
_IDENTITY = ("trust_remote_code", "revision", "generation_config")


@dataclass(frozen=True, slots=True)
class RecordedIdentity:
    """The identity (the beginning of the directory's name) of a recorded boot with exactly these settings."""

    identity: str
    boot: str
    tuning_seconds: float | None = None
    new_configs: int = 0
    """Kernels that the boot tuned in addition to those it loaded."""


@dataclass(frozen=True, slots=True)
class TuningVerdict:
    """The verdict and its reason."""

    verdict: Autotune
    reason: str


def recorded_identity(
    checkpoint: Checkpoint, request: MemoryRequest, options: Mapping[str, Any]
) -> RecordedIdentity | None:
    """The identity of a recorded boot with these settings; utilization and patches over the image do not affect it."""
    wanted = _relevant(request)
    same = [b for b in checkpoint.boots if _has_options(b, options) and _relevant(request_of_boot(b)) == wanted]
    same.sort(key=lambda boot: boot.variant != request.variant)
    return next((_identity_of(boot) for boot in same if boot.figures.get("autotune")), None)


def tuning_range(checkpoint: Checkpoint, request: MemoryRequest) -> tuple[float, float] | None:
    """Seconds that kernel tuning took in boots like this one, from an empty cache; None if no boot is recorded.

    It depends on where the experts are: a hook has moved the hot ones into HBM by then.
    """
    whole = [
        boot for boot in checkpoint.boots if "tuning_seconds" in boot.figures and "saved_configs" not in boot.figures
    ]
    placed = [boot for boot in whole if boot.variant == request.variant]
    exact = [boot for boot in placed if _relevant(request_of_boot(boot)) == _relevant(request)]
    same_version = [boot for boot in placed if boot.engine_version == request.engine_version]
    seconds = [float(boot.figures["tuning_seconds"]) for boot in exact or same_version or placed]
    if request.variant is None and not exact and checkpoint.autotune.tuning_seconds:
        seconds.append(checkpoint.autotune.tuning_seconds)
    return (min(seconds), max(seconds)) if seconds else None


def _identity_of(boot: MeasuredBoot) -> RecordedIdentity:
    figures = boot.figures
    new = figures.get("saved_configs", 0) - figures.get("configs", 0) if "saved_configs" in figures else 0
    return RecordedIdentity(figures["autotune"], boot.name, figures.get("tuning_seconds"), new)


def _relevant(request: MemoryRequest) -> MemoryRequest:
    return replace(request, gpu_memory_utilization=0.0, variant=None)


def _has_options(boot: MeasuredBoot, options: Mapping[str, Any]) -> bool:
    """A log prints the model twice: as an option and as a positional argument."""
    named = boot.settings.get("model") or boot.settings.get("model_tag")
    wanted = options.get("model") or options.get("model_tag")
    others = all(boot.settings.get(name) == options.get(name) for name in _IDENTITY)
    return not boot.assumed and named == wanted and others


def tuning_verdict(
    before: RecordedIdentity | None, after: RecordedIdentity | None, effects: Sequence[Effect]
) -> TuningVerdict:
    """`effects` are those of the fields that differ; without any, the launch is the same."""
    if not effects:
        return TuningVerdict("same", "the launch does not differ")
    if before is not None and after is not None:
        old, new = short_identity(before.identity), short_identity(after.identity)
        if is_same_identity(before.identity, after.identity):
            return TuningVerdict("same", f"both were recorded as {new}")
        return TuningVerdict("new", f"recorded as {old} before, {new} after")
    by_identity = {effect.identity: effect for effect in reversed(effects)}
    if (effect := by_identity.get("changes")) is not None:
        return TuningVerdict("new", f"{_name(effect)} is part of the identity: {effect.reason}")
    if (effect := by_identity.get("unknown")) is not None:
        return TuningVerdict("unknown", f"{_name(effect)}: {effect.reason}")
    return TuningVerdict("same", "no field that differs is part of the identity")


def _name(effect: Effect) -> str:
    return effect.field.rpartition(".")[2]


def effect_sentence(effect: Effect, overall: TuningVerdict, *, by_record: bool) -> str:
    """The effect of a field on the launch and on the tuning cache. `by_record`: both identities are recorded."""
    if by_record and effect.identity != "keeps":
        return f"{effect.launch}; tuning cache {overall.verdict}: {overall.reason}"
    verdict = {"keeps": "same", "changes": "new", "unknown": "unknown"}[effect.identity]
    return f"{effect.launch}; tuning cache {verdict}: {effect.reason}"


@dataclass(frozen=True, slots=True)
class EvidencePair:
    """One figure of both releases, None if a release lacks it."""

    figure: str
    unit: str
    workload: str
    before: float | None
    after: float | None

    @property
    def percent(self) -> float | None:
        """The increase from `before` to `after`."""
        if self.before is None or self.after is None or self.before == 0:
            return None
        return 100 * (self.after - self.before) / self.before


def evidence_pairs(before: Sequence[EvidenceSection], after: Sequence[EvidenceSection]) -> tuple[EvidencePair, ...]:
    """In the order of `before`, then those that only `after` has. Figures of different workloads are never paired."""
    old, new = _by_load(before), _by_load(after)
    keys = (*old, *(key for key in new if key not in old))
    return tuple(EvidencePair(*key, old.get(key), new.get(key)) for key in keys)


def _by_load(figures: Sequence[EvidenceSection]) -> dict[tuple[str, str, str], float]:
    return {(item.figure, item.unit, item.workload): item.value for item in figures}


@dataclass(frozen=True, slots=True)
class ReleaseSummary:
    """The facts about one release. `ledger` has the recorded findings about its settings."""

    engine_version: str | None = None
    memory: MemoryPlan | None = None
    boot_seconds: float | None = None
    tuning_seconds: tuple[float, float] | None = None
    """How long its kernels take to tune with an empty cache: the shortest and the longest such boot."""
    recorded: RecordedIdentity | None = None
    evidence: tuple[EvidenceSection, ...] = ()
    ledger: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Costs:
    """The facts about both releases, and the costs that follow."""

    before: ReleaseSummary
    after: ReleaseSummary
    restart: bool
    """The plans differ, so the change requires a launch."""
    tuning: TuningVerdict
    evidence: tuple[EvidencePair, ...]
    ledger: tuple[Diagnostic, ...]
    """Recorded findings that apply only to `after`."""

    @property
    def tuning_seconds(self) -> tuple[float, float] | None:
        """How long the first boot tunes, unless its cache is seeded; None if it finds a cache."""
        if self.tuning.verdict == "same":
            return None
        recorded = self.after.recorded.tuning_seconds if self.after.recorded else None
        return (recorded, recorded) if recorded else self.after.tuning_seconds

    @property
    def back_in_hbm_gib(self) -> float | None:
        """Weights that return from Grace to the GPU; negative if more are offloaded."""
        if self.before.memory is None or self.after.memory is None:
            return None
        return self.before.memory.host.offloaded_gib - self.after.memory.host.offloaded_gib

    def as_json(self) -> dict[str, Any]:
        """Unknown figures are null."""
        sides = (self.before, self.after)
        plans = [side.memory for side in sides]
        return {
            "restart": self.restart,
            "autotune": self.tuning.verdict,
            "kv_cache_gib": [_rounded(plan.hbm.kv_cache_gib) if plan else None for plan in plans],
            "boot_seconds": [side.boot_seconds for side in sides],
            "autotune_reason": self.tuning.reason,
            "tuning_seconds": self.tuning_seconds[1] if self.tuning_seconds else None,
            "tuning_seconds_range": self.tuning_seconds and list(self.tuning_seconds),
            "kv_cache_basis": [plan.basis if plan else None for plan in plans],
            "offloaded_gib": [_rounded(plan.host.offloaded_gib) if plan else None for plan in plans],
            "grace_gib": [
                [_rounded(plan.host.least_gib), _rounded(plan.host.resident_gib)] if plan else None for plan in plans
            ],
            "evidence": [
                {"figure": p.figure, "unit": p.unit, "workload": p.workload, "values": [p.before, p.after]}
                for p in self.evidence
            ],
            "ledger": [finding.as_json() for finding in self.ledger],
        }


def costs(before: ReleaseSummary, after: ReleaseSummary, effects: Sequence[Effect], *, restart: bool) -> Costs:
    """`effects` are those of the fields that differ."""
    known = {(finding.code, finding.message) for finding in before.ledger}
    return Costs(
        before=before,
        after=after,
        restart=restart,
        tuning=tuning_verdict(before.recorded, after.recorded, effects if restart else ()),
        evidence=evidence_pairs(before.evidence, after.evidence),
        ledger=tuple(finding for finding in after.ledger if (finding.code, finding.message) not in known),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
