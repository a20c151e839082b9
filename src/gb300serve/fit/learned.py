"""Overheads learned from boots on this machine: from a log to the constant F and the file `boots.json`."""

import ast
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from gb300serve.boot.receipts import LogFacts
from gb300serve.core.errors import CompileError
from gb300serve.engines.logs import boot_machine
from gb300serve.engines.registry import ENGINES
from gb300serve.engines.vllm.engine import VLLM
from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot
from gb300serve.fit.memory import GB300, PRINTED_GIB, measured_boots, shape_of
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


@dataclass(frozen=True, slots=True)
class LearnedOverhead:
    """A boot, its constant F in GiB, and the settings that F depends on."""

    boot: MeasuredBoot
    constant_gib: float
    depends_on: Mapping[str, object]
    computed_offload_gib: float
    """The offload by the sizes of the checkpoint. F is computed from the log's own figure."""

    @property
    def has_unexpected_offload(self) -> bool:
        """The log's offload contradicts the sizes: another checkpoint, or another engine."""
        return abs(float(self.boot.figures["offloaded_gib"]) - self.computed_offload_gib) >= PRINTED_GIB


def learn_overhead(
    checkpoint: Checkpoint, log: str, lines: Iterable[str], environment: tuple[tuple[str, str], ...] = ()
) -> tuple[Checkpoint, LearnedOverhead]:
    """The checkpoint with the log's last boot added, and its overhead. NothingToLearnError if a figure is missing."""
    machine, facts = boot_machine(), LogFacts(ECHO)
    for line in lines:
        facts.take(line, machine.feed(line))
    boot = replace(boot_from_log(checkpoint, log, facts), environment=environment)
    extended = with_boots(checkpoint, (boot,))
    measured = measured_boots(extended, GB300.total_gib)[0]
    request = measured.request
    computed = offload(checkpoint.parameters, request.cpu_offload_gb, request.cpu_offload_params).moved_gib
    return extended, LearnedOverhead(boot, measured.constant, shape_of(request), computed)


def boot_from_log(checkpoint: Checkpoint, log: str, facts: LogFacts, *, measured: bool = True) -> MeasuredBoot:
    """The boot in a log; `measured` False: only its arguments. NothingToLearnError if a value is missing."""
    settings = parse_arguments(facts.echo)
    if settings is None:
        raise NothingToLearnError(log, f"complete `{ECHO}` line")
    hooked = facts.figure("hook_residency", "layers") is not None
    tokens, length = facts.number("kv_cache_tokens", "tokens"), facts.number("max_model_len", "max_model_len")
    return MeasuredBoot(
        name=log,
        engine_version=facts.figure("engine_version", "version") or "",
        variant=next(iter(checkpoint.variants), None) if hooked else None,
        settings=settings | ({"max_model_len": length} if length is not None else {}),
        booted=tokens is not None,
        figures=_figures(log, facts, settings) if measured else {},
        learned=True,
    )


def _figures(log: str, facts: LogFacts, settings: Mapping[str, Any]) -> dict[str, Any]:
    available, offloaded = facts.number("kv_cache_gib", "gib"), facts.number("offloaded_gib", "gib")
    if available is None:
        raise NothingToLearnError(log, "`Available KV cache memory` line")
    if offloaded is None and settings.get("cpu_offload_gb"):
        raise NothingToLearnError(log, "`Total CPU offloaded parameters` line, although it requests offload")
    optional = {
        "kv_cache_tokens": facts.number("kv_cache_tokens", "tokens"),
        "autotune": facts.figure("tuning_cache", "identity") or None,
    }
    known = {name: value for name, value in optional.items() if value is not None}
    return {"kv_cache_gib": available, "offloaded_gib": offloaded or 0.0, **known}


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
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _is_figure(name: str, value: object) -> bool:
    return isinstance(value, str if name == "autotune" else int | float)


def with_learned_overhead(document: Mapping[str, Any], repo: str, learned: LearnedOverhead) -> dict[str, Any]:
    """The document with the learned overhead, which replaces an older one of the same settings."""
    boot = learned.boot
    entry = {
        "repo": repo,
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
    identity = ("repo", "engine_version", "variant", "settings", "around")
    older = document.get("boots", ()) if document.get("format") == FORMAT else ()
    others = [other for other in older if any(other.get(key) != entry[key] for key in identity)]
    return {"format": FORMAT, "boots": [entry, *others]}
