"""Data about engines, model families and settings that were tried (JSON files in `data`)."""

import functools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from gb300serve.core.diagnostics import Severity
from gb300serve.engines.tables import public, version_key

_DATA = Path(__file__).parent / "data"


class Store(NamedTuple):
    """The directory of the kernel tuning; `variable` moves it elsewhere."""

    path: str
    variable: str


class Tried(NamedTuple):
    """A setting that was tried: an engine option or a variable, its values, and the result."""

    result: str
    hint: str
    option: str | None = None
    variable: str | None = None
    equal: list[Any] | None = None
    below: float | None = None
    above: float | None = None
    repo: re.Pattern[str] | None = None
    engine: str | None = None
    severity: Severity = "note"

    def is_about(self, value: Any) -> bool:
        """Whether the record is about this value."""
        if self.equal is not None:
            return any(type(value) is type(tested) and value == tested for tested in self.equal)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return False
        return (self.below is None or 0 < value < self.below) and (self.above is None or value > self.above)


@functools.cache
def _read(name: str) -> Any:
    return json.loads((_DATA / name).read_bytes())


@functools.cache
def tuning_store(version: str | None) -> Store | None:
    """Where this version of vLLM stores its kernel tuning, if outside its own cache directory."""
    for row in _read("engines.json")["tuning_store"]:
        if _since(version, row["since"]):
            return Store(row["path"], row["variable"])
    return None


@functools.cache
def runner_v2_since() -> str:
    """The first release of vLLM that is reported to ignore offload and draft schedules on model runner V2."""
    return str(_read("engines.json")["runner_v2"]["ignores_since"])


def runner_v2_ignores(version: str | None) -> bool:
    """Whether this version is one of those. The day-0 build is not: both worked there."""
    return _since(version, runner_v2_since())


@functools.cache
def divides_draft(version: str | None) -> bool:
    """Whether this version rejects a draft length that is not a multiple of the drafter's block."""
    return version is not None and public(version) in _read("engines.json")["draft_multiple_of_block"]


@functools.cache
def drafter_block(repo: str) -> int | None:
    """Tokens that the checkpoint's own drafter was trained to draft at once."""
    block: int | None = _read("engines.json")["drafter_block"].get(repo.lower())
    return block


@functools.cache
def _thinking() -> tuple[re.Pattern[str], tuple[tuple[re.Pattern[str], str], ...]]:
    """Names of models without reasoning, and the families with reasoning and their parsers, the more specific first."""
    known = _read("thinking.json")
    families = ((re.compile(row["repo"], re.IGNORECASE), row["parser"]) for row in known["models"])
    return re.compile(known["plain"], re.IGNORECASE), tuple(families)


def reasoning_parser(name: str) -> str | None:
    """The parser of a reasoning model, by its name; None for another model."""
    plain, families = _thinking()
    if not name or plain.search(name):
        return None
    return next((parser for family, parser in families if family.search(name)), None)


@functools.cache
def tried() -> tuple[Tried, ...]:
    """The settings that were tried."""
    return tuple(
        Tried(**{**row, "repo": re.compile(row["repo"], re.IGNORECASE) if "repo" in row else None})
        for row in _read("tried.json")["settings"]
    )


def _since(version: str | None, first: str) -> bool:
    key, least = version_key(version or ""), version_key(first)
    return key is not None and least is not None and key >= least
