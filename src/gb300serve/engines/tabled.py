"""An engine with option tables: checks against the tables, words by the tables."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from gb300serve.core.default_ports import DEFAULT_PORTS
from gb300serve.core.values import Value
from gb300serve.engines.base import Options
from gb300serve.engines.common import MODEL_KEYS, POSITIONAL, first_text, model_first, plain_words, texts, whole
from gb300serve.engines.forms import words
from gb300serve.engines.problem import Problem
from gb300serve.engines.shipped import TableChoice, elsewhere, tables_for

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
