"""One engine: its options, arguments, endpoints and names."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from gb300serve.core.values import EngineName, Value
from gb300serve.engines.base import Options, Problem
from gb300serve.engines.options import (
    POSITIONAL,
    first_text,
    model_first,
    option_arguments,
    plain_arguments,
    texts,
    whole,
)
from gb300serve.engines.tables import OptionTable, TableChoice, elsewhere, tables_for


@dataclass(frozen=True, slots=True)
class EngineParser:
    """How the engine's own parser differs from argparse."""

    rewrite: Callable[[Sequence[str], OptionTable], Sequence[str]]
    """What the engine does to the arguments before argparse sees them."""
    prog: str
    root: str
    """The parser that reports unrecognized arguments."""
    has_positional: bool = False
    """The model may be a positional argument."""
    rewrites_flags: bool = False
    """Underscores in flags become dashes, and dotted flags become JSON."""


@dataclass(frozen=True, slots=True)
class ArgumentEcho:
    """The line of the log in which the engine prints its arguments."""

    prefix: str
    is_complete: bool = False
    """It holds every argument, not only those that differ from their default."""
    replaced: Mapping[tuple[str, Value], Value] = field(default_factory=dict)
    """Values (with their option) that the engine replaces before it prints them."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The endpoint by which a server is recognised, for an engine whose metrics have no start time."""

    path: str
    receipts: frozenset[str]
    """Receipts of the log whose figures only this start of the engine has."""
    figures_in: Callable[[str], Mapping[str, int]]
    """More such figures, from a line of the log that is not a receipt."""
    is_same_start: Callable[[Mapping[str, Any], Mapping[str, Any]], bool | None]
    """Whether the response and the figures of a log are from one start; None if they have nothing in common."""


@dataclass(frozen=True, slots=True)
class EngineProbe:
    """How to ask a server of the engine how it is: the names of series in `/metrics`, paths, limits."""

    requests_running: str
    requests_waiting: str
    kv_cache_usage: str
    generation_tokens: str
    health_timeout: float
    """Seconds that `/health` may take."""
    server_info: ServerInfo | None = None
    """None if `process_start_time_seconds` in `/metrics` is the start of the server."""
    key_variable: str | None = None
    """The environment variable with the key of `/v1`."""


class NodeArguments(NamedTuple):
    """How an engine spans several machines without Ray."""

    options: tuple[str, ...]
    """The options that a recipe leaves to `nodes`."""
    join: Callable[[str, str], tuple[str, ...]]
    """The arguments for one machine, by the leader's address and the machine's rank (the leader's is 0)."""
    address_variable: str | None = None
    """The environment variable with the machine's own address, for an engine that guesses it otherwise."""


Meaning: TypeAlias = Callable[[Options, TableChoice], Iterator[Problem]]
"""The problems of options that the engine's parser accepts and the engine rejects later."""

# Longer values are not worth caching.
_SHORT = 200
_SIMPLE = frozenset({"bool", "int", "str"})


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine. `version` is the recipe's `engine.version`, None if it has none."""

    name: EngineName
    title: str
    """The name as its makers write it."""
    meaning: Meaning
    model_key: str
    """The option that names the model by a flag."""
    default_port: int
    default_host: str
    image: str
    """The official image repository."""
    launchers: tuple[tuple[str, ...], ...]
    """The arguments that start the server, before its options."""
    module: str
    """The start of the Python module that is the server."""
    parser: EngineParser
    nodes: NodeArguments
    echo: ArgumentEcho
    probe: EngineProbe
    own_flags: frozenset[str]
    """Flags that are common in launch commands and that no other engine has."""
    image_words: frozenset[str] = frozenset()
    """Words of an image's name that mean this engine, besides its name."""
    serving_images: str | None = None
    """A pattern for image repositories whose entrypoint is the server."""

    def check(self, options: Options, version: str | None) -> tuple[Problem, ...]:
        """The problems of the options, in their order; notes come last."""
        choice = tables_for(self.name, version)
        found = [problem for key, value in options.items() for problem in _problems((self.name, version), key, value)]
        wrong = {problem.path[0] for problem in found}
        later = (*self.meaning(options, choice), *_check_model(options, self.model_key))
        found += [problem for problem in later if problem.path[0] not in wrong]
        order = {key: place for place, key in enumerate(options)}
        found.sort(key=lambda problem: order[str(problem.path[0])])
        return (*found, *_note(self.name, choice, version))

    def argv(self, options: Options, version: str | None) -> tuple[str, ...]:
        """The model, then the options in order; `--key value` without a table: an invalid recipe also has a plan."""
        choice = tables_for(self.name, version)
        return tuple(word for key, value in model_first(options) for word in _arguments(choice, key, value))

    def open_list(self, options: Options, version: str | None) -> str | None:
        """The key of the last option if it would take a bare argument after it as a value, else None."""
        tables = tables_for(self.name, version).tables
        keys = [key for key, value in model_first(options) if value is not None]
        option = next((found for table in tables if keys and (found := table.find(keys[-1]))), None)
        if option is None or option.positional:
            return None
        bare = option.arity == "optional" and options[option.key] is True
        return option.key if option.arity == "many" or bare else None

    def served_names(self, options: Options) -> tuple[str, ...]:
        """The names that `/v1/models` will list: the model's path if none is set; empty without a model."""
        model = self.model_path(options)
        return texts(options.get("served_model_name")) or ((model,) if model else ())

    def model_path(self, options: Options) -> str | None:
        """The model: a path in the container, or a repository."""
        return first_text(options, POSITIONAL, self.model_key)

    def port(self, options: Options) -> int:
        """The port that the engine listens on, in the container."""
        return whole(options.get("port"), self.default_port)

    def is_image(self, repository: str) -> bool:
        """Whether the repository's name contains the engine's name, or one of its `image_words`."""
        name = repository.lower()
        return self.name in name or not self.image_words.isdisjoint(name.split("/")[-1].split("-"))

    def is_serving_image(self, repository: str) -> bool:
        """Whether the image's entrypoint is the server."""
        return self.serving_images is not None and re.search(self.serving_images, repository) is not None


def _check_model(options: Options, key: str) -> Iterator[Problem]:
    if options.get(POSITIONAL) is not None and options.get(key) is not None:
        yield Problem((key,), "OPT013", f"{key} and model_tag both name the model", "leave one of them out")


def _problems(version: tuple[str, str | None], key: str, value: Value) -> tuple[Problem, ...]:
    kind = type(value).__name__
    if kind in _SIMPLE and len(f"{version[1]}{key}{value}") <= _SHORT:
        return _cached_problems(version, key, kind, value)
    return _check_option(tables_for(*version), key, value)


# Recipes of a lane repeat most options; `kind` keeps true and 1 apart.
@lru_cache(maxsize=4096)
def _cached_problems(version: tuple[str, str | None], key: str, kind: str, value: Value) -> tuple[Problem, ...]:  # noqa: ARG001
    return _check_option(tables_for(*version), key, value)


def _check_option(choice: TableChoice, key: str, value: Value) -> tuple[Problem, ...]:
    """The newest table's problems, if every table has some."""
    refusals = []
    for table in choice.tables:
        refusals.append(table.check(key, value))
        if not refusals[-1]:
            return ()
    table = choice.tables[-1]
    return tuple(elsewhere(found, table.engine, key) if found.code == "OPT001" else found for found in refusals[-1])


def _arguments(choice: TableChoice, key: str, value: Value) -> tuple[str, ...]:
    """The arguments by the first table that accepts the value, else by one that has the option, else `--key value`."""
    having = [table for table in choice.tables if table.find(key) is not None]
    fitting = having if choice.exact else [table for table in having if not table.check(key, value)] or having
    option = fitting[0].find(key) if fitting else None
    return plain_arguments(key, value) if option is None else option_arguments(option, value)


def _note(engine: str, choice: TableChoice, version: str | None) -> Iterator[Problem]:
    if choice.exact:
        return
    against = " and ".join(table.version for table in choice.tables)
    if version is None:
        message = f"engine.version is not set: the options are checked against all {engine} tables"
    else:
        message = f"{engine} {version} has no option table: its options are checked against {against}"
    yield Problem((), "OPT008", message)
