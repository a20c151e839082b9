"""The option tables of the engines' versions."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from gb300serve.core.text import suggestion
from gb300serve.core.values import Value
from gb300serve.engines.base import Problem
from gb300serve.engines.check import check_value
from gb300serve.engines.options import EngineOption, read_option

# The names of one setting in different engines.
SYNONYMS = (
    ("block_size", "page_size"),
    ("cudagraph_capture_sizes", "cuda_graph_bs_decode"),
    ("gpu_memory_utilization", "mem_fraction_static"),
    ("max_cudagraph_capture_size", "cuda_graph_max_bs_decode"),
    ("max_model_len", "context_length"),
    ("max_num_batched_tokens", "chunked_prefill_size"),
    ("max_num_seqs", "max_running_requests"),
    ("model", "model_path"),
    ("pipeline_parallel_size", "pp_size"),
    ("tensor_parallel_size", "tp_size"),
    ("tokenizer", "tokenizer_path"),
)


@dataclass(frozen=True, eq=False)  # a version has one table, so identity is enough
class OptionTable:
    """One shipped table. Options are read from their rows on demand: a recipe sets 20 of 300."""

    engine: str
    version: str
    rows: Mapping[str, Mapping[str, Any]]
    tool_call_parsers: tuple[str, ...] = ()
    reasoning_parsers: tuple[str, ...] = ()
    refused: Mapping[str, str] | None = None
    """Options that this build rejects although its parser accepts them, with what to do instead."""

    @cached_property
    def _read(self) -> dict[str, EngineOption]:
        return {}

    def find(self, key: str) -> EngineOption | None:
        """The option with this key of a recipe, or None."""
        row = self.rows.get(key)
        if row is None:
            return None
        option = self._read.get(key)
        if option is None:
            option = self._read[key] = read_option(key, row)
        return option

    def options(self) -> Iterator[EngineOption]:
        """Every option, in the order of the keys."""
        for key in sorted(self.rows):
            yield read_option(key, self.rows[key])

    @cached_property
    def _spelled(self) -> dict[str, str]:
        """Other spellings (dashes, aliases, off flags), without leading dashes and with underscores, to keys."""
        found = {}
        for option in self.options():
            for flag in (option.flag, *option.aliases, *option.off):
                found[flag.lstrip("-").replace("-", "_")] = option.key
        return found

    def correct_key(self, key: str) -> str | None:
        """The key that an unknown one probably means: another spelling, another engine's name, the closest name."""
        plain = key.lstrip("-").replace("-", "_")
        return self.equivalent(plain) or self._completed(plain) or suggestion(plain, self.rows)

    def equivalent(self, key: str) -> str | None:
        """The key for another spelling, or for another engine's name of the setting."""
        return self._spelled.get(key) or self._spelled.get(key.lower()) or self._synonym(key)

    def _synonym(self, key: str) -> str | None:
        names = (name for names in SYNONYMS if key in names for name in names if name != key)
        return next((name for name in names if name in self.rows), None)

    def _completed(self, key: str) -> str | None:
        """The only key that begins with this one: the engine's parser would complete the flag."""
        begun = [name for name in self.rows if name.startswith(f"{key}_")]
        return begun[0] if len(begun) == 1 else None

    def check(self, key: str, value: Value) -> tuple[Problem, ...]:
        """The problems of one option; none if the engine's parser accepts it."""
        option = self.find(key)
        return (self._unknown(key),) if option is None else tuple(check_value(option, value))

    def _unknown(self, key: str) -> Problem:
        message = f"engine.options has no '{key}' in {self.engine} {self.version}"
        refused = (self.refused or {}).get(key)
        right = None if refused else self.correct_key(key)
        hint = refused or (f"write '{right}'" if right else None)
        return Problem((key,), "OPT001", message, hint, fix=None if _turns(key, right) else right)


def _turns(key: str, right: str | None) -> bool:
    """Whether one of two names is the off form of the other: their values have opposite meanings."""
    off = ("no_", "disable_")
    return right is not None and key.lstrip("-").replace("-", "_").startswith(off) != right.startswith(off)


VersionKey: TypeAlias = tuple[tuple[int, ...], tuple[int, int], int, str]

# Patterns are compiled on first use (re caches them): a version with its own table needs none.
_NUMBER = r"[0-9]{1,18}"
_FORM = rf"(?i)v?({_NUMBER}(?:\.{_NUMBER})*)(?:\.?(a|b|rc|post)({_NUMBER}))?(?:\.dev({_NUMBER}))?(?:\+(.+))?"
_STAGES = {"a": 1, "b": 2, "rc": 3, None: 4, "post": 5}


@lru_cache(maxsize=256)
def version_key(version: str) -> VersionKey | None:
    """The sort key of a version, in the order of PEP 440; None if the text is not a version."""
    match = re.fullmatch(_FORM, version.strip())
    if match is None:
        return None
    numbers, stage, serial, build, label = match.groups()
    release = tuple(map(int, numbers.split(".")))
    while release and release[-1] == 0:
        release = release[:-1]
    rank = 0 if build is not None and stage is None else _STAGES[stage and stage.lower()]
    return release, (rank, int(serial or 0)), int(build) if build is not None else 2**63, label or ""


def public(version: str) -> str:
    """The version without its local label: `0.32.0+cpu` is built from the source of `0.32.0`."""
    return version.split("+", 1)[0]


# Not importlib.resources: importing it takes 10 ms, a tenth of a compile.
_TABLES = Path(__file__).parent / "tables"


class TableChoice(NamedTuple):
    """The tables for a version: its own, else its neighbours (the older first), else none."""

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
    """The tables for `version`; all tables of the engine without a valid version."""
    for name in (version, public(version)) if version else ():
        if (engine, name) in _shipped():
            return TableChoice(exact=True, tables=(table(engine, name),))
    known = versions(engine)
    key = version_key(version) if version else None
    if key is None:
        return TableChoice(exact=False, tables=tuple(table(engine, name) for name in known))
    same = [name for name in known if _key(name)[:-1] == key[:-1]]
    if same:  # 0.33 and v0.33.0 are 0.33.0
        return TableChoice(exact=True, tables=(table(engine, same[0]),))
    below = [name for name in known if _key(name) < key][-1:]
    above = [name for name in known if _key(name) > key][:1]
    return TableChoice(exact=False, tables=tuple(table(engine, name) for name in (*below, *above)))


def elsewhere(problem: Problem, engine: str, key: str) -> Problem:
    """The problem of an unknown option, with the versions that have it: then it is not misspelt."""
    known = [name for name in versions(engine) if table(engine, name).find(key) is not None]
    if not known:
        other = _other_engine(engine, key)
        return replace(problem, hint=f"{other} has it, {engine} does not", fix=None) if other else problem
    has = f"{engine} {_span(engine, known)} it"
    return replace(problem, hint=f"{problem.hint}; {has}" if problem.hint else has, fix=None)


def _other_engine(engine: str, key: str) -> str | None:
    """Another engine that has the option, unless this one has an equivalent."""
    if table(engine, versions(engine)[-1]).equivalent(key):
        return None
    others = sorted({name for name, _ in _shipped()} - {engine})
    return next((name for name in others if table(name, versions(name)[-1]).find(key) is not None), None)


def _span(engine: str, known: list[str]) -> str:
    """`0.30.0 and later have`, `up to 0.29.0 has` or a list; development builds do not count as releases."""
    releases = [name for name in versions(engine) if ".dev" not in name]
    having = [name for name in known if ".dev" not in name]
    if having and having == releases[-len(having) :]:
        return f"{having[0]} and later have" if len(having) > 1 else f"{having[0]} has"
    if having and having == releases[: len(having)]:
        return f"up to {having[-1]} has"
    return ", ".join(known) + " have"
