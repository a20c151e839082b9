"""Boots that this machine has seen: from a log to the constant of the arithmetic, and to the file that keeps them."""

import ast
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from gb300serve.boot.log_facts import LogFacts
from gb300serve.core.errors import CompileError
from gb300serve.engines.logs import boot_machine
from gb300serve.engines.registry import ENGINES
from gb300serve.engines.vllm.engine import VLLM
from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot
from gb300serve.fit.memory import PRINTED_GIB, measured_boots, shape_of
from gb300serve.fit.model import GB300
from gb300serve.fit.request import offload

ECHO = VLLM.echo.prefix
PREFIXES = tuple(engine.echo.prefix for engine in ENGINES.values())
_LARGEST = 2**63
_ENUM = re.compile(r"<[\w.]+: ([^<>]*)>")
_OBJECT = re.compile(r"<[^<>]*>")


def echoes(text: str) -> bool:
    """Whether the line holds the echo."""
    return any(prefix in text for prefix in PREFIXES)


def arguments(text: str) -> dict[str, Any] | None:
    """The options of the line (all of it, or what follows its header); None where it is no such line, or cut."""
    prefix = next((prefix for prefix in PREFIXES if prefix in text), None)
    if prefix is None:
        return None
    words = _OBJECT.sub("None", _ENUM.sub(r"\1", text.partition(prefix)[2].strip()))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SyntaxWarning)  # of a damaged line; else it is printed
            found = _value(ast.parse(words, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return found if isinstance(found, dict) else None


def _value(node: ast.expr) -> Any:
    """Literals, and configuration objects as mappings of their fields; raises ValueError for anything else."""
    match node:
        case ast.Dict(keys, values):
            pairs = zip(keys, values, strict=True)
            return {str(_value(key)): _value(value) for key, value in pairs if key is not None}
        case ast.List(items) | ast.Tuple(items) | ast.Set(items):
            return [_value(item) for item in items]
        case ast.Name():  # `inf`, `nan`: no option's value
            return None
        case ast.Call(args=[], keywords=fields):
            return {field.arg: _value(field.value) for field in fields if field.arg is not None}
        case _:
            return _scalar(ast.literal_eval(node))


def _scalar(value: object) -> object:
    """What JSON has; anything else is its text, and a number that no option can have is none."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST else None
    return value if value is None or isinstance(value, str) else str(value)


FORMAT = "gb300serve.boots/1"


class NothingToLearnError(CompileError):
    """The log does not hold what the constant is computed from."""

    def __init__(self, log: str, lacks: str) -> None:
        super().__init__(
            f"{log} has no {lacks}: nothing can be learned from it",
            hint="take the whole log of a boot that came to its KV cache: docker logs NAME > boot.log 2>&1",
        )


@dataclass(frozen=True, slots=True)
class LearnedOverhead:
    """A boot, its constant F in GiB, and what F depends on."""

    boot: MeasuredBoot
    constant_gib: float
    depends_on: Mapping[str, object]
    stairs_gib: float
    """What the staircase says that it moved; the log's own figure is what counts."""

    @property
    def surprising(self) -> bool:
        """The log moved another amount than the sizes say: of another checkpoint, or by another engine."""
        return abs(float(self.boot.figures["offloaded_gib"]) - self.stairs_gib) >= PRINTED_GIB


def learn(
    checkpoint: Checkpoint, log: str, lines: Iterable[str], around: tuple[tuple[str, str], ...] = ()
) -> tuple[Checkpoint, LearnedOverhead]:
    """The last boot in the lines of `log`, and the checkpoint that knows it.

    Raises NothingToLearnError when the lines lack a receipt.
    """
    boot = replace(boot_of(checkpoint, log, _read(lines)), around=around)
    taught = with_boots(checkpoint, (boot,))
    one = measured_boots(taught, GB300.total_gib)[0]
    stairs = offload(checkpoint.parameters, one.demand.cpu_offload_gb, one.demand.cpu_offload_params).moved_gib
    return taught, LearnedOverhead(boot, one.constant, shape_of(one.demand), stairs)


def _read(lines: Iterable[str]) -> LogFacts:
    machine, heard = boot_machine(), LogFacts(ECHO)
    for line in lines:
        heard.take(line, machine.feed(line))
    return heard


def boot_of(checkpoint: Checkpoint, log: str, heard: LogFacts, *, measured: bool = True) -> MeasuredBoot:
    """The boot that a log tells of. `measured` False: its arguments alone are wanted.

    Raises NothingToLearnError when the arguments are not whole, or a figure that was measured is not there.
    """
    settings = arguments(heard.echo)
    if settings is None:
        raise NothingToLearnError(log, f"whole `{ECHO}` line")
    hooked = heard.figure("hook_residency", "layers") is not None
    tokens, length = heard.number("kv_cache_tokens", "tokens"), heard.number("max_model_len", "max_model_len")
    return MeasuredBoot(
        name=log,
        engine_version=heard.figure("engine_version", "version") or "",
        variant=next(iter(checkpoint.variants), None) if hooked else None,
        settings=settings | ({"max_model_len": length} if length is not None else {}),
        booted=tokens is not None,
        figures=_figures(log, heard, settings) if measured else {},
        learned=True,
    )


def _figures(log: str, heard: LogFacts, settings: Mapping[str, Any]) -> dict[str, Any]:
    available = heard.number("kv_cache_gib", "gib")
    if available is None:
        raise NothingToLearnError(log, "`Available KV cache memory` line")
    offloaded = heard.number("offloaded_gib", "gib")
    if offloaded is None and settings.get("cpu_offload_gb"):
        raise NothingToLearnError(log, "`Total CPU offloaded parameters` line although it asks for offload")
    tokens = heard.number("kv_cache_tokens", "tokens")
    identity = heard.figure("tuning_cache", "identity")
    return {
        "kv_cache_gib": available,
        "offloaded_gib": offloaded or 0.0,
        **({"kv_cache_tokens": tokens} if tokens is not None else {}),
        **({"autotune": identity} if identity else {}),
    }


def with_boots(checkpoint: Checkpoint, boots: Iterable[MeasuredBoot]) -> Checkpoint:
    """The checkpoint that knows these boots too, before its own."""
    return replace(checkpoint, boots=(*boots, *checkpoint.boots))


def kept(document: Mapping[str, Any], repo: str) -> tuple[MeasuredBoot, ...]:
    """Boots of one repository from the file's document; entries of another shape are left out."""
    entries = document.get("boots", ()) if document.get("format") == FORMAT else ()
    found = (_boot_of(entry) for entry in entries if isinstance(entry, Mapping) and entry.get("repo") == repo)
    return tuple(boot for boot in found if boot is not None)


def _boot_of(entry: Mapping[str, Any]) -> MeasuredBoot | None:
    try:
        return MeasuredBoot(
            name=entry["log"],
            engine_version=entry["engine_version"],
            variant=entry["variant"],
            settings=dict(entry["settings"]),
            booted=entry["booted"],
            figures={name: value for name, value in entry["figures"].items() if _is_figure(name, value)},
            learned=True,
            around=tuple((name, value) for name, value in entry["around"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _is_figure(name: str, value: object) -> bool:
    return isinstance(value, str if name == "autotune" else int | float)


def added(document: Mapping[str, Any], repo: str, lesson: LearnedOverhead) -> dict[str, Any]:
    """The document with the lesson in it; it takes the place of an older one of the same settings."""
    boot = lesson.boot
    entry = {
        "repo": repo,
        "depends_on": dict(lesson.depends_on),
        "constant_gib": round(lesson.constant_gib, 4),
        "log": boot.name,
        "engine_version": boot.engine_version,
        "variant": boot.variant,
        "settings": dict(boot.settings),
        "around": [list(pair) for pair in boot.around],
        "booted": boot.booted,
        "figures": dict(boot.figures),
    }
    identity = ("repo", "engine_version", "variant", "settings", "around")
    older = document.get("boots", ()) if document.get("format") == FORMAT else ()
    others = [one for one in older if any(one.get(key) != entry[key] for key in identity)]
    return {"format": FORMAT, "boots": [entry, *others]}
