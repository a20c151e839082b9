"""What is known of engines, of families of models and of settings that were tried: data beside this module."""

import functools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from gb300serve.engines.tables import public, version_key

_DATA = Path(__file__).parent / "data"


class Store(NamedTuple):
    """Where an engine keeps what it tunes and compiles; `variable` moves it elsewhere."""

    path: str
    variable: str


class Tried(NamedTuple):
    """A setting with a record: an engine option or a variable, the values that it speaks of, and what came of it."""

    option: str | None
    variable: str | None
    equal: tuple[Any, ...] | None
    below: float | None
    above: float | None
    repo: re.Pattern[str] | None
    engine: str | None
    severity: str
    result: str
    hint: str

    def speaks_of(self, value: Any) -> bool:
        """Whether the record is about this value."""
        if self.equal is not None:
            return any(type(value) is type(one) and value == one for one in self.equal)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return False
        return (self.below is None or 0 < value < self.below) and (self.above is None or value > self.above)


class Thinking(NamedTuple):
    """Models that think before they answer, by their repository's name, and the parser that tells both apart."""

    repo: re.Pattern[str]
    parser: str


@functools.cache
def _read(name: str) -> Any:
    return json.loads((_DATA / name).read_bytes())


@functools.cache
def tuning_store(version: str | None) -> Store | None:
    """Where this version of vLLM keeps its kernel tuning, when that is outside its own cache directory."""
    for row in _read("engines.json")["tuning_store"]:
        if _since(version, row["since"]):
            return Store(row["path"], row["variable"])
    return None


@functools.cache
def runner_v2_since() -> str:
    """The first release of vLLM that is reported to ignore offload and draft schedules on model runner V2."""
    return str(_read("engines.json")["runner_v2"]["ignores_since"])


def runner_v2_ignores(version: str | None) -> bool:
    """Whether this version is one of those. The day-0 build is not: there both were seen at work."""
    return _since(version, runner_v2_since())


@functools.cache
def divides_draft(version: str | None) -> bool:
    """Whether this version refuses a draft length that is no multiple of the drafter's block."""
    return version is not None and public(version) in _read("engines.json")["draft_multiple_of_block"]


@functools.cache
def drafter_block(repo: str) -> int | None:
    """Tokens that the checkpoint's own drafter was trained to draft at once."""
    found = _read("engines.json")["drafter_block"].get(repo.lower())
    return int(found) if found is not None else None


@functools.cache
def thinking() -> tuple[Thinking, ...]:
    """Families of models that think, the more special first."""
    rows = _read("thinking.json")
    return tuple(Thinking(re.compile(row["repo"], re.IGNORECASE), row["parser"]) for row in rows["models"])


@functools.cache
def plain_models() -> re.Pattern[str]:
    """Names of models that do not think although their family does."""
    return re.compile(_read("thinking.json")["plain"], re.IGNORECASE)


@functools.cache
def tried() -> tuple[Tried, ...]:
    """The settings with a record."""
    return tuple(_tried(row) for row in _read("tried.json")["settings"])


def _tried(row: dict[str, Any]) -> Tried:
    equal = row.get("equal")
    return Tried(
        option=row.get("option"),
        variable=row.get("variable"),
        equal=tuple(equal) if equal is not None else None,
        below=row.get("below"),
        above=row.get("above"),
        repo=re.compile(row["repo"], re.IGNORECASE) if "repo" in row else None,
        engine=row.get("engine"),
        severity=row.get("severity", "note"),
        result=row["result"],
        hint=row["hint"],
    )


def _since(version: str | None, first: str) -> bool:
    key, least = version_key(version or ""), version_key(first)
    return key is not None and least is not None and key >= least
