"""Overheads learned from boots on this machine: from a log to the constant F and the file `boots.json`."""

import ast
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from gb300serve.boot.events import BootBegan, Event, Receipt
from gb300serve.boot.prefixes import strip_prefixes
from gb300serve.boot.receipts import LogFacts
from gb300serve.core.errors import CompileError
from gb300serve.engines.logs import boot_machine
from gb300serve.engines.registry import ENGINES
from gb300serve.engines.vllm.engine import VLLM
from gb300serve.fit.checkpoint import GIB, Checkpoint, MeasuredBoot
from gb300serve.fit.hardware import GB300, Hbm, gpu_with_total, is_same_total
from gb300serve.fit.memory import EXPLAINED_SPREAD_GIB, PRINTED_GIB, measured_boots, needed_gib, shape_of
from gb300serve.fit.request import offload

ECHO = VLLM.echo.prefix
PREFIXES = tuple(engine.echo.prefix for engine in ENGINES.values())
_LARGEST = 2**63
_ENUM = re.compile(r"<[\w.]+: ([^<>]*)>")
_OBJECT = re.compile(r"<[^<>]*>")


def has_arguments(text: str) -> bool:
    """Whether the line prints the engine's arguments."""
    return any(prefix in text for prefix in PREFIXES)


def parse_arguments(text: str) -> dict[str, Any] | None:
    """The engine's options from the line that prints them; None for another line, or an incomplete one."""
    prefix = next((prefix for prefix in PREFIXES if prefix in text), None)
    if prefix is None:
        return None
    literal = _OBJECT.sub("None", _ENUM.sub(r"\1", text.partition(prefix)[2].strip()))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SyntaxWarning)  # a damaged line would print a warning
            options = _value(ast.parse(literal, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return options if isinstance(options, dict) else None


def _value(node: ast.expr) -> Any:
    """Literals, and configuration objects as mappings of their fields; raises ValueError for anything else."""
    match node:
        case ast.Dict(keys, values):
            pairs = zip(keys, values, strict=True)
            return {str(_value(key)): _value(value) for key, value in pairs if key is not None}
        case ast.List(items) | ast.Tuple(items) | ast.Set(items):
            return [_value(item) for item in items]
        case ast.Name():  # `inf` and `nan`, which no option accepts
            return None
        case ast.Call(args=[], keywords=fields):
            return {field.arg: _value(field.value) for field in fields if field.arg is not None}
        case _:
            return _scalar(ast.literal_eval(node))


def _scalar(value: object) -> object:
    """A JSON value: other types become text, and numbers outside the range of JSON become null."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST else None
    return value if value is None or isinstance(value, str) else str(value)


FORMAT = "gb300serve.boots/1"


class NothingToLearnError(CompileError):
    """The log lacks a figure that the constant is computed from."""

    def __init__(self, log: str, missing: str) -> None:
        super().__init__(
            f"{log} has no {missing}: no overhead can be learned from it",
            hint="use the whole log of a boot that reached its KV cache: docker logs NAME > boot.log 2>&1",
        )


class ForeignLogError(CompileError):
    """The log is of another GPU or another checkpoint: what it teaches would falsify later results."""

    def __init__(self, log: str, reason: str, hint: str) -> None:
        super().__init__(f"{log} {reason}: nothing was learned from it", hint=hint)


@dataclass(frozen=True, slots=True)
class LearnedOverhead:
    """A boot, its constant F in GiB, and the settings that F depends on."""

    boot: MeasuredBoot
    constant_gib: float
    depends_on: Mapping[str, object]
    gpu: Hbm = GB300


@dataclass(frozen=True, slots=True)
class CalibratedLaunch:
    """What is known of the launch beside its log: what may change its memory, and its GPU.

    `settings` are its options, for an excerpt without the line that prints them.
    """

    environment: tuple[tuple[str, str], ...] = ()
    gpu: Hbm | None = None
    settings: Mapping[str, Any] | None = None


NO_LAUNCH = CalibratedLaunch()


def learn_overhead(
    checkpoint: Checkpoint,
    log: str,
    lines: Iterable[str],
    launch: CalibratedLaunch = NO_LAUNCH,
) -> tuple[Checkpoint, LearnedOverhead]:
    """The checkpoint with the log's last boot added, and its overhead.

    Raises NothingToLearnError if a figure is missing, ForeignLogError for a log of another GPU or checkpoint.
    """
    machine, facts, graphs = boot_machine(), LogFacts(ECHO), FirstGraphs()
    for line, at in strip_prefixes(lines):
        events = machine.feed(line, at)
        facts.take(line, events)
        graphs.take(events)
    total = _total_of_log(log, facts, launch.gpu)
    _check_checkpoint(checkpoint, log, facts)
    boot = boot_from_log(checkpoint, log, facts, settings=launch.settings)
    figures = {**boot.figures, **({} if graphs.gib is None else {"graphs_gib": graphs.gib})}
    boot = replace(boot, environment=launch.environment, total_gib=total, figures=figures)
    extended = with_boots(checkpoint, (boot,))
    measured = measured_boots(extended, total)[0]
    request = measured.request
    computed = offload(checkpoint.parameters, request.cpu_offload_gb, request.cpu_offload_params).moved_gib
    if checkpoint.parameters and abs(measured.offloaded_gib - computed) >= PRINTED_GIB:
        reason = f"logged {measured.offloaded_gib:.2f} GiB offloaded where these sizes give {computed:.2f}"
        raise ForeignLogError(log, reason, "check that the log is of this checkpoint and of these options")
    return extended, LearnedOverhead(boot, measured.constant, shape_of(request), gpu_with_total(total))


@dataclass(slots=True)
class FirstGraphs:
    """GiB of the CUDA graphs that are captured before the KV cache is sized: only these reduce it."""

    gib: float | None = None
    is_sized: bool = False

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, BootBegan):
                self.gib, self.is_sized = None, False
            elif isinstance(event, Receipt) and event.name in ("kv_cache_gib", "kv_cache_tokens"):
                self.is_sized = True
            elif isinstance(event, Receipt) and event.name == "graph_capture" and not self.is_sized:
                gib = event.values.get("gib")
                self.gib = float(gib) if isinstance(gib, int | float) else self.gib


def _total_of_log(log: str, facts: LogFacts, gpu: Hbm | None) -> float:
    """CUDA's total as the log states it, else that of the launch."""
    logged = facts.number("gpu_memory", "total_gib")
    if logged is None:
        return (gpu or GB300).total_gib
    if gpu is not None and not is_same_total(gpu.total_gib, float(logged)):
        reason = f"is of a GPU with {logged:g} GiB, but this launch is for {gpu.name} with {gpu.total_gib:.1f}"
        hint = "write the GPU of the log into the site file, gpu: {name: …, total_gib: …}, or use a log of this GPU"
        raise ForeignLogError(log, reason, hint)
    return gpu_with_total(float(logged)).total_gib


# Relative difference up to which two sizes of a checkpoint count as equal.
_SAME_SIZE = 0.02


def _check_checkpoint(checkpoint: Checkpoint, log: str, facts: LogFacts) -> None:
    hint = "use a log of a boot of this checkpoint"
    architecture = facts.figure("architecture", "architecture")
    if checkpoint.architecture and architecture and architecture != checkpoint.architecture:
        raise ForeignLogError(
            log, f"is of a {architecture}, but {checkpoint.repo} is a {checkpoint.architecture}", hint
        )
    size, known = facts.number("checkpoint", "checkpoint_gib"), checkpoint.bytes / GIB
    if checkpoint.architecture and size is not None and abs(size - known) > _SAME_SIZE * known:
        raise ForeignLogError(log, f"is of a checkpoint of {size:.1f} GiB, but {checkpoint.repo} has {known:.1f}", hint)


def boot_from_log(
    checkpoint: Checkpoint,
    log: str,
    facts: LogFacts,
    *,
    measured: bool = True,
    settings: Mapping[str, Any] | None = None,
) -> MeasuredBoot:
    """The boot in a log; `measured` False: only its arguments. NothingToLearnError if a value is missing."""
    options = parse_arguments(facts.echo) or settings
    if options is None:
        raise NothingToLearnError(log, f"complete `{ECHO}` line")
    hooked = facts.figure("hook_residency", "layers") is not None
    tokens, length = facts.number("kv_cache_tokens", "tokens"), facts.number("max_model_len", "max_model_len")
    options = {**options, **({"max_model_len": length} if length is not None else {})}
    return MeasuredBoot(
        name=log,
        engine_version=facts.figure("engine_version", "version") or "",
        variant=next(iter(checkpoint.variants), None) if hooked else None,
        settings=options,
        booted=tokens is not None,
        figures=_figures(checkpoint, log, facts, options) if measured else {},
        learned=True,
    )


def _figures(checkpoint: Checkpoint, log: str, facts: LogFacts, settings: Mapping[str, Any]) -> dict[str, Any]:
    offloaded, tokens = facts.number("offloaded_gib", "gib"), facts.number("kv_cache_tokens", "tokens")
    available = facts.number("kv_cache_gib", "gib")
    if available is None:
        available = _gib_of_tokens(checkpoint, facts, tokens, settings.get("max_model_len"))
    if available is None:
        raise NothingToLearnError(log, "`Available KV cache memory` line")
    if offloaded is None and settings.get("cpu_offload_gb"):
        raise NothingToLearnError(log, "`Total CPU offloaded parameters` line, although it requests offload")
    optional = {
        "kv_cache_tokens": tokens,
        "autotune": facts.figure("tuning_cache", "identity") or None,
        "grace_expert_gib": facts.number("hook_residency", "pinned_gib"),
        "host_left_gib": facts.number("hook_residency", "host_available_gib"),
    }
    known = {name: value for name, value in optional.items() if value is not None}
    return {"kv_cache_gib": available, "offloaded_gib": offloaded or 0.0, **known}


def _gib_of_tokens(checkpoint: Checkpoint, facts: LogFacts, tokens: float | None, length: object) -> float | None:
    """The KV cache of an excerpt that states only its tokens; None if GiB per token are unknown for this version."""
    version = facts.figure("engine_version", "version")
    counted = {boot.engine_version for boot in checkpoint.boots if boot.figures.get("kv_cache_gib") is not None}
    if tokens is None or not isinstance(length, int) or length <= 0 or version not in (counted or {version}):
        return None
    return tokens * needed_gib(checkpoint.kv_cache, length) / length


def with_boots(checkpoint: Checkpoint, boots: Iterable[MeasuredBoot]) -> Checkpoint:
    """The checkpoint with these boots before its own."""
    return replace(checkpoint, boots=(*boots, *checkpoint.boots))


def parse_boots(document: Mapping[str, Any], repo: str) -> tuple[MeasuredBoot, ...]:
    """Boots of one repository from the file's document; malformed entries are skipped."""
    entries = document.get("boots", ()) if document.get("format") == FORMAT else ()
    parsed = (_parse_boot(entry) for entry in entries if isinstance(entry, Mapping) and entry.get("repo") == repo)
    return tuple(boot for boot in parsed if boot is not None)


def _parse_boot(entry: Mapping[str, Any]) -> MeasuredBoot | None:
    try:
        return MeasuredBoot(
            name=entry["log"],
            engine_version=entry["engine_version"],
            variant=entry["variant"],
            settings=dict(entry["settings"]),
            booted=entry["booted"],
            figures={name: value for name, value in entry["figures"].items() if _is_figure(name, value)},
            learned=True,
            environment=tuple((name, value) for name, value in entry["around"]),
            total_gib=entry.get("total_gib"),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _is_figure(name: str, value: object) -> bool:
    return isinstance(value, str if name == "autotune" else int | float)


def with_learned_overhead(document: Mapping[str, Any], repo: str, learned: LearnedOverhead) -> dict[str, Any]:
    """The document with the learned overhead.

    It replaces an older one of the same settings, unless the two contradict each other: then both are kept.
    """
    boot = learned.boot
    entry = {
        "repo": repo,
        "gpu": learned.gpu.name,
        "total_gib": boot.total_gib,
        "depends_on": dict(learned.depends_on),
        "constant_gib": round(learned.constant_gib, 4),
        "log": boot.name,
        "engine_version": boot.engine_version,
        "variant": boot.variant,
        "settings": dict(boot.settings),
        "around": [list(pair) for pair in boot.environment],
        "booted": boot.booted,
        "figures": dict(boot.figures),
    }
    older = document.get("boots", ()) if document.get("format") == FORMAT else ()
    return {"format": FORMAT, "boots": [entry, *(other for other in older if not _is_replaced(other, entry))]}


def _is_replaced(older: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    identity = ("repo", "engine_version", "variant", "settings", "around", "total_gib")
    if any(older.get(key) != entry[key] for key in identity):
        return False
    constant = older.get("constant_gib")
    if older.get("log") == entry["log"] or not isinstance(constant, int | float):
        return True
    return abs(constant - float(entry["constant_gib"])) <= EXPLAINED_SPREAD_GIB
