"""An engine with option tables: checks against the tables, words by the tables."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from gb300serve.core.text import suggestion
from gb300serve.core.values import DEFAULT_PORTS, Value
from gb300serve.engines.base import Options, Problem
from gb300serve.engines.check import check_value
from gb300serve.engines.options import (
    MODEL_KEYS,
    POSITIONAL,
    EngineOption,
    first_text,
    model_first,
    plain_words,
    read_option,
    texts,
    whole,
    words,
)

# What the engines call differently, vLLM's name first.
TWINS = (
    ("block_size", "page_size"),
    ("cudagraph_capture_sizes", "cuda_graph_bs_decode"),
    ("gpu_memory_utilization", "mem_fraction_static"),
    ("max_cudagraph_capture_size", "cuda_graph_max_bs_decode"),
    ("max_model_len", "context_length"),
    ("max_num_batched_tokens", "chunked_prefill_size"),
    ("max_num_seqs", "max_running_requests"),
    ("model", "model_path"),
    ("tokenizer", "tokenizer_path"),
)


@dataclass(frozen=True, eq=False)  # a version has one table: itself is its identity
class OptionTable:
    """One shipped table. Options are read from their rows on demand: a recipe says twenty of three hundred."""

    engine: str
    version: str
    rows: Mapping[str, Mapping[str, Any]]
    tool_call_parsers: tuple[str, ...] = ()
    reasoning_parsers: tuple[str, ...] = ()
    refused: Mapping[str, str] | None = None
    """Options that this build is known to refuse, with what to do instead."""

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

    def rightly(self, key: str) -> str | None:
        """The key that a wrong one stands for: another spelling, the other engine's name, the closest one."""
        plain = key.lstrip("-").replace("-", "_")
        return self.same(plain) or self._begun(plain) or suggestion(plain, self.rows)

    def same(self, key: str) -> str | None:
        """The key that is said by another spelling, or by the other engine's name for it."""
        return self._spelled.get(key) or self._spelled.get(key.lower()) or self._twin(key)

    def _twin(self, key: str) -> str | None:
        names = (sglang if key == vllm else vllm for vllm, sglang in TWINS if key in (vllm, sglang))
        return next((name for name in names if name in self.rows), None)

    def _begun(self, key: str) -> str | None:
        """The only key that begins with the words of this one: the engine's parser would complete its flag."""
        begun = [name for name in self.rows if name.startswith(f"{key}_")]
        return begun[0] if len(begun) == 1 else None

    def check(self, key: str, value: Value) -> tuple[Problem, ...]:
        """Everything wrong with one option; no problem means that the engine's parser takes it."""
        option = self.find(key)
        return (self._unknown(key),) if option is None else tuple(check_value(option, value))

    def words(self, key: str, value: Value) -> tuple[str, ...]:
        """The words that say an option that passed the check."""
        option = self.find(key)
        if option is None:
            raise KeyError(key)
        return words(option, value)

    def _unknown(self, key: str) -> Problem:
        message = f"engine.options has no '{key}' in {self.engine} {self.version}"
        refused = (self.refused or {}).get(key)
        right = None if refused else self.rightly(key)
        return Problem((key,), "OPT001", message, refused or (f"write '{right}'" if right else None))


VersionKey: TypeAlias = tuple[tuple[int, ...], tuple[int, int], int, str]

# Patterns are compiled when first used (re keeps them): a start that finds its table pays for none.
_NUMBER = r"[0-9]{1,18}"
_FORM = rf"(?i)v?({_NUMBER}(?:\.{_NUMBER})*)(?:\.?(a|b|rc|post)({_NUMBER}))?(?:\.dev({_NUMBER}))?(?:\+(.+))?"
_STAGES = {"a": 1, "b": 2, "rc": 3, None: 4, "post": 5}


@lru_cache(maxsize=256)
def version_key(version: str) -> VersionKey | None:
    """What versions sort by, as PEP 440 orders these forms; None for a text that is no version."""
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
    """The version without its local label: `0.32.0+cpu` is built from the tree of `0.32.0`."""
    return version.split("+", 1)[0]


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


Meaning: TypeAlias = Callable[[Options, TableChoice], Iterator[Problem]]
"""What an engine refuses although its parser takes it."""

# What is longer is not worth remembering.
_SHORT = 200
_SIMPLE = frozenset({"bool", "int", "str"})


@dataclass(frozen=True, slots=True)
class TabledEngine:
    """Implements `engines.base.Engine` for the engine of this name."""

    name: str
    meaning: Meaning

    def check(self, options: Options, version: str | None) -> tuple[Problem, ...]:
        choice = tables_for(self.name, version)
        found = [problem for key, value in options.items() for problem in _problems((self.name, version), key, value)]
        wrong = {problem.path[0] for problem in found}
        later = (*self.meaning(options, choice), *_check_model(options, MODEL_KEYS[self.name]))
        found += [problem for problem in later if problem.path[0] not in wrong]
        order = {key: place for place, key in enumerate(options)}
        found.sort(key=lambda problem: order[str(problem.path[0])])
        return (*found, *_note(self.name, choice, version))

    def argv(self, options: Options, version: str | None) -> tuple[str, ...]:
        choice = tables_for(self.name, version)
        return tuple(said for key, value in model_first(options) for said in _say(choice, key, value))

    def open_list(self, options: Options, version: str | None) -> str | None:
        tables = tables_for(self.name, version).tables
        said = [key for key, value in model_first(options) if value is not None]
        option = next((found for table in tables if said and (found := table.find(said[-1]))), None)
        if option is None or option.positional:
            return None
        bare = option.arity == "optional" and options[option.key] is True
        return option.key if option.arity == "many" or bare else None

    def served_names(self, options: Options) -> tuple[str, ...]:
        model = self.model_path(options)
        return texts(options.get("served_model_name")) or ((model,) if model else ())

    def model_path(self, options: Options) -> str | None:
        return first_text(options, POSITIONAL, MODEL_KEYS[self.name])

    def port(self, options: Options) -> int:
        return whole(options.get("port"), DEFAULT_PORTS[self.name])


def _check_model(options: Options, key: str) -> Iterator[Problem]:
    if options.get(POSITIONAL) is not None and options.get(key) is not None:
        yield Problem((key,), "OPT013", f"{key} and model_tag both name the model", "leave one of them out")


def _problems(asked: tuple[str, str | None], key: str, value: Value) -> tuple[Problem, ...]:
    kind = type(value).__name__
    if kind in _SIMPLE and len(f"{asked[1]}{key}{value}") <= _SHORT:
        return _remembered(asked, key, kind, value)
    return _check_option(tables_for(*asked), key, value)


# Recipes of a lane say the same things again and again; `kind` keeps true and 1 apart.
@lru_cache(maxsize=4096)
def _remembered(asked: tuple[str, str | None], key: str, kind: str, value: Value) -> tuple[Problem, ...]:  # noqa: ARG001
    return _check_option(tables_for(*asked), key, value)


def _check_option(choice: TableChoice, key: str, value: Value) -> tuple[Problem, ...]:
    """The newest table's problems, when every table that speaks refuses."""
    refusals = []
    for table in choice.tables:
        refusals.append(table.check(key, value))
        if not refusals[-1]:
            return ()
    table = choice.tables[-1]
    return tuple(elsewhere(found, table.engine, key) if found.code == "OPT001" else found for found in refusals[-1])


def _say(choice: TableChoice, key: str, value: Value) -> tuple[str, ...]:
    """The words of the first table that takes the value, else of one that has the option, else the common form."""
    having = [table for table in choice.tables if table.find(key) is not None]
    fitting = having if choice.exact else [table for table in having if not table.check(key, value)] or having
    option = fitting[0].find(key) if fitting else None
    return plain_words(key, value) if option is None else words(option, value)


def _note(engine: str, choice: TableChoice, version: str | None) -> Iterator[Problem]:
    if choice.exact:
        return
    against = " and ".join(table.version for table in choice.tables)
    if version is None:
        message = f"engine.version is not stated: the options are checked against every table of {engine}"
    else:
        message = f"{engine} {version} has no option table: its options are checked against {against}"
    yield Problem((), "OPT008", message)
