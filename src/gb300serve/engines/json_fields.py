"""The keys and values inside an option that takes JSON, where the engine's configuration class is known."""

import operator
from collections.abc import Iterator, Mapping, Sequence

from gb300serve.core.text import suggestion
from gb300serve.core.values import Value, compact_json
from gb300serve.engines.option import JsonField
from gb300serve.engines.problem import Path, Problem

_COMPARE = {"gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le}
_BOUND = {"gt": "greater than", "ge": "at least", "lt": "less than", "le": "at most"}
_WANTED = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "text": "text",
    "list": "a list",
    "mapping": "a mapping",
    "null": "null",
}


def check_fields(fields: Mapping[str, JsonField], path: Path, value: Mapping[str, Value]) -> Iterator[Problem]:
    """Unknown keys, and values that the configuration class refuses."""
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            close = suggestion(key, fields)
            hint = f"write '{close}'" if close else f"it takes {', '.join(sorted(fields))}"
            yield Problem((*path, key), "OPT006", f"{path[0]} has no '{key}'", hint)
        else:
            yield from _check_field(field, (*path, key), item)


def _check_field(field: JsonField, path: Path, value: Value) -> Iterator[Problem]:
    place = ".".join(map(str, path))
    if "any" in field.kinds:
        return
    if not field.kinds & _kinds(value):
        wanted = " or ".join(_WANTED[kind] for kind in _WANTED if kind in field.kinds)
        yield Problem(path, "OPT002", f"{place} is {compact_json(value)}, not {wanted}")
    elif field.choices and value is not None and not chosen(field, value):
        close = suggestion(str(value), map(str, field.choices))
        hint = f"write {close}" if close else f"one of {', '.join(map(str, field.choices))}"
        yield Problem(path, "OPT003", f"{place} is {compact_json(value)}, which the engine does not know", hint)
    elif isinstance(value, (int, float)):
        for name, limit in field.bounds:
            if not _COMPARE[name](value, limit):
                message = f"{place} is {compact_json(value)}, not {_BOUND[name]} {limit}"
                yield Problem(path, "OPT007", message, f"write a number {_BOUND[name]} {limit}")


def chosen(field: JsonField, value: Value) -> bool:
    """Backends are folded by the engine before it compares: case and dashes do not count."""
    folded = {str(choice).lower().replace("-", "_") for choice in field.choices}
    return str(value).lower().replace("-", "_") in folded


def _kinds(value: Value) -> frozenset[str]:
    """The kinds that take `value`."""
    if value is None:
        return frozenset({"null"})
    if isinstance(value, bool):
        return frozenset({"bool"})
    if isinstance(value, int):
        return frozenset({"int", "float"})
    if isinstance(value, float):
        return frozenset({"float"})
    if isinstance(value, str):
        return frozenset({"text"})
    return frozenset({"list"} if isinstance(value, Sequence) else {"mapping"})
