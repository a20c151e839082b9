"""The tables that the package ships, and which of them speak for a version."""

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from gb300serve.engines.problem import Problem
from gb300serve.engines.table import OptionTable
from gb300serve.engines.versions import VersionKey, public, version_key

# A path beside the module and not importlib.resources: that module alone takes 10 ms to import, a compile's tenth.
_TABLES = Path(__file__).parent / "tables"


class TableChoice(NamedTuple):
    """The tables that speak for a version: its own, else its neighbours (the older first), else none."""

    exact: bool
    tables: tuple[OptionTable, ...]


@lru_cache(maxsize=1)
def _shipped() -> tuple[tuple[str, str], ...]:
    return tuple(sorted(_split(path.stem) for path in _TABLES.glob("*.json")))


def _split(stem: str) -> tuple[str, str]:
    engine, _, version = stem.partition("-")
    return engine, version


def _key(version: str) -> VersionKey:
    return version_key(version) or ((), (0, 0), 0, "")


@lru_cache(maxsize=8)
def versions(engine: str) -> tuple[str, ...]:
    """The versions of `engine` that have a table, oldest first."""
    return tuple(sorted((version for name, version in _shipped() if name == engine), key=_key))


@lru_cache(maxsize=32)
def table(engine: str, version: str) -> OptionTable:
    """The shipped table of exactly this version."""
    raw = json.loads((_TABLES / f"{engine}-{version}.json").read_bytes())
    return OptionTable(
        engine=raw["engine"],
        version=raw["version"],
        rows=raw["options"],
        tool_call_parsers=tuple(raw["tool_call_parsers"]),
        reasoning_parsers=tuple(raw["reasoning_parsers"]),
        refused=raw.get("refused"),
    )


@lru_cache(maxsize=64)
def tables_for(engine: str, version: str | None) -> TableChoice:
    """The tables that speak for `version`. Without a version, or with a text that is none, every table does."""
    for spelled in (version, public(version)) if version else ():
        if (engine, spelled) in _shipped():
            return TableChoice(exact=True, tables=(table(engine, spelled),))
    known = versions(engine)
    key = version_key(version) if version else None
    if key is None:
        return TableChoice(exact=False, tables=tuple(table(engine, name) for name in known))
    below = [name for name in known if _key(name) < key][-1:]
    above = [name for name in known if _key(name) > key][:1]
    return TableChoice(exact=False, tables=tuple(table(engine, name) for name in (*below, *above)))


def elsewhere(problem: Problem, engine: str, key: str) -> Problem:
    """An unknown option's problem, with the versions that do have it."""
    known = [name for name in versions(engine) if table(engine, name).find(key) is not None]
    if not known:
        other = _other_engine(engine, key)
        return replace(problem, hint=f"{other} has it, {engine} has nothing of that name") if other else problem
    has = f"{engine} {_span(engine, known)} it"
    return replace(problem, hint=f"{problem.hint}; {has}" if problem.hint else has)


def _other_engine(engine: str, key: str) -> str | None:
    """The engine that has the option, where this one has none that means the same: no misspelling is to be mended."""
    if table(engine, versions(engine)[-1]).same(key):
        return None
    others = sorted({name for name, _ in _shipped()} - {engine})
    return next((name for name in others if table(name, versions(name)[-1]).find(key) is not None), None)


def _span(engine: str, known: list[str]) -> str:
    """`0.30.0 and later have`, `up to 0.29.0 has` or a list. Development builds lie outside the order of releases."""
    releases = [name for name in versions(engine) if ".dev" not in name]
    having = [name for name in known if ".dev" not in name]
    if having and having == releases[-len(having) :]:
        return f"{having[0]} and later have" if len(having) > 1 else f"{having[0]} has"
    if having and having == releases[: len(having)]:
        return f"up to {having[-1]} has"
    return ", ".join(known) + " have"
