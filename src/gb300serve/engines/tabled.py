"""What the engines with option tables share: checks against the tables, words by the tables."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

from gb300serve.core.values import Value
from gb300serve.engines.base import Options
from gb300serve.engines.common import model_first, plain_words
from gb300serve.engines.forms import words
from gb300serve.engines.problem import Problem
from gb300serve.engines.shipped import TableChoice, elsewhere, tables_for

Meaning: TypeAlias = Callable[[Options, TableChoice], Iterator[Problem]]
"""What an engine refuses although its parser takes it."""

# What is longer is not worth remembering.
_SHORT = 200
_SIMPLE = frozenset({"bool", "int", "str"})


def check_options(engine: str, options: Options, version: str | None, meaning: Meaning) -> tuple[Problem, ...]:
    """Everything wrong with the options, in their order; notes stand last."""
    choice = tables_for(engine, version)
    found = [problem for key, value in options.items() for problem in _problems((engine, version), key, value)]
    wrong = {problem.path[0] for problem in found}
    found += [problem for problem in meaning(options, choice) if problem.path[0] not in wrong]
    order = {key: place for place, key in enumerate(options)}
    found.sort(key=lambda problem: order[str(problem.path[0])])
    return (*found, *_note(engine, choice, version))


def options_argv(engine: str, options: Options, version: str | None) -> tuple[str, ...]:
    """The engine's words: the positional model first and bare, then the options in their order."""
    choice = tables_for(engine, version)
    return tuple(said for key, value in model_first(options) for said in _say(choice, key, value))


def last_open_list(engine: str, options: Options, version: str | None) -> str | None:
    """The key of the last option when it would swallow bare words printed after it, else None."""
    said = [key for key, value in model_first(options) if value is not None]
    option = next((found for t in tables_for(engine, version).tables if said and (found := t.find(said[-1]))), None)
    if option is None or option.positional:
        return None
    bare = option.arity == "optional" and options[option.key] is True
    return option.key if option.arity == "many" or bare else None


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
    yield Problem((), "OPT008", message, None, "note")
