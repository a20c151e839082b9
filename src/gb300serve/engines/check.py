"""Whether the engine's parser would accept a value: its type, choices and number of values."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from gb300serve.core.text import suggestion
from gb300serve.core.values import Value, compact_json
from gb300serve.engines.base import (
    Options,
    Path,
    Problem,
    human_int,
    human_int_or_auto,
    is_list,
    is_whole,
    number,
    si_int,
)
from gb300serve.engines.options import WANTED, EngineOption, argument, check_fields, is_secret, items, reads_as_flag

_FEW = 8  # choices that a message lists
_HUMAN = {"human-int": human_int, "human-int-or-auto": human_int_or_auto, "si-int": si_int}
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), "true"),
    **dict.fromkeys(("false", "no", "off", "0"), "false"),
    "null": "null",
}
_BRACED = r"(?s)\s*\{.*\}\s*"
_NUMBER = r"\d+(?:\.\d+)?"
# Options whose value is a share: at most 1. A ratio may exceed 1.
_FRACTIONS = re.compile(r"utilization|fraction")
_WANTED = {
    **WANTED,
    "human-int": "a whole number, also with a suffix (8K is 8192, 8k is 8000)",
    "human-int-or-auto": "a whole number, also with a suffix (1M is 1048576, 1m is 1000000), or auto",
    "si-int": "a whole number, also with a suffix (1Mi is 1048576, 1M is 1000000)",
}


def check_value(option: EngineOption, value: Value) -> Iterator[Problem]:
    """The problems of `value`; null means unset and is always valid."""
    path: Path = (option.key,)
    if value is None:
        return
    if option.kind == "bool":
        yield from _check_bool(option, value)
    elif option.arity in ("many", "append") and not (option.takes_json and isinstance(value, Mapping)):
        yield from _check_items(option, value)
    elif option.arity == "optional" and value is True and not option.positional:
        return
    elif is_list(value) and not option.takes_json:
        yield _wrong_arity(option, path, value)
    else:
        yield from _check_one(option, path, value)


def shown(value: Value) -> str:
    """A value as the recipe wrote it, short enough for a message."""
    text = f"'{value}'" if isinstance(value, str) else compact_json(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _wrong_arity(option: EngineOption, path: Path, value: Value) -> Problem:
    values = items(value)
    is_right = len(values) == 1 and not is_list(values[0]) and not any(_check_one(option, path, values[0]))
    hint = f"write {shown(values[0])}" if is_right else "write one value"
    return Problem(path, "OPT004", f"{option.key} takes one value, not the list {shown(value)}", hint)


def _check_bool(option: EngineOption, value: Value) -> Iterator[Problem]:
    path: Path = (option.key,)
    if not isinstance(value, bool):
        message = f"{option.key} is {shown(value)}, not true or false"
        text = argument(value).lower()
        if (meant := _BOOLEANS.get(text) or suggestion(text, ("true", "false"))) is None:
            hint = "write true or false" if option.off else "write true, or leave it out"
        elif meant != "false" or option.off:
            hint = _write(meant)
        else:
            meant, hint = None, "leave it out"
        yield Problem(path, "OPT002", message, hint, fix=meant if text in _BOOLEANS and text not in "10" else None)
    elif not value and not option.off:
        yield Problem(
            path, "OPT005", f"{option.key} cannot be switched off: {option.flag} has no off form", "leave it out"
        )


def _check_items(option: EngineOption, value: Value) -> Iterator[Problem]:
    path: Path = (option.key,)
    if not items(value):
        yield Problem(path, "OPT004", f"{option.key} is an empty list", "write at least one value, or leave it out")
    for index, item in enumerate(items(value)):
        place: Path = (*path, index) if is_list(value) else path
        if item is None or (is_list(item) and not option.takes_json):
            yield Problem(place, "OPT002", f"{option.key} holds {shown(item)}, not {_WANTED[option.kind]}")
        elif option.arity == "many" and reads_as_flag(argument(item)):
            yield Problem(place, "OPT011", f"{option.key} holds {shown(item)}, which the engine would parse as a flag")
        else:
            yield from _check_one(option, place, item)


def _check_one(option: EngineOption, path: Path, value: Value) -> Iterator[Problem]:
    if option.positional and reads_as_flag(argument(value)):
        yield Problem(path, "OPT011", f"{option.key} is {shown(value)}, which the engine would parse as a flag")
    elif is_secret(value):
        return
    elif option.takes_json:
        yield from _check_json(option, path, value)
    elif not _right_type(option, value):
        meant = _meant(option, value)
        message = f"{option.key} is {shown(value)}, not {_WANTED[option.kind]}"
        yield Problem(path, "OPT002", message, meant and _write(meant), fix=meant and _certain(value, meant))
    elif option.choices and not _chosen(option, value):
        yield _wrong_choice(option, path, value)


def _right_type(option: EngineOption, value: Value) -> bool:
    match option.kind:
        case "int":
            return is_whole(value)
        case "float":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "human-int" | "human-int-or-auto" | "si-int":
            return _right_human(option, value)
        case _:
            return isinstance(value, str)


def _right_human(option: EngineOption, value: Value) -> bool:
    if isinstance(value, str):
        try:
            _HUMAN[option.kind](value)
        except ValueError:
            return False
        return True
    return is_whole(value)


def _meant(option: EngineOption, value: Value) -> str | None:
    """What to write instead of a value of the wrong type, if that is clear."""
    if option.kind == "text":
        is_choice = not option.choices or argument(value) in option.values
        return f'"{argument(value)}"' if is_choice and not isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, (str, float)):
        return None
    plain = argument(value).replace(" ", "")
    if plain == "null":
        return plain
    if re.fullmatch(r"\d{1,3}(,\d{3})+", plain):
        plain = plain.replace(",", "")
    if option.kind == "float":
        return _meant_number(option, plain.replace(",", "."))
    try:
        return str(human_int(plain.removesuffix(".0")))
    except ValueError:
        return None


def _write(meant: str) -> str:
    return "write null, without quotes" if meant == "null" else f"write {meant}"


def _meant_number(option: EngineOption, text: str) -> str | None:
    """The number without its unit; of a share, `95%` and `95` are 0.95."""
    match = re.fullmatch(rf"0*({_NUMBER})([A-Za-z]*|%)", text)
    if match is None:
        return None
    number, is_percentage = Decimal(match[1]), match[2] == "%" or 1 < Decimal(match[1]) <= 100
    if _FRACTIONS.search(option.key):
        return f"{number / 100:f}" if is_percentage else match[1] if number <= 1 else None
    return match[1] if match[2] != "%" else None


def _certain(value: Value, meant: str) -> str | None:
    """`meant`, if the value says the same with or without quotes."""
    return meant if argument(value).lower() == meant.strip('"').lower() else None


def _chosen(option: EngineOption, value: Value) -> bool:
    if option.folds and isinstance(value, str):
        return value.lower().replace("-", "_") in option.values
    return value in option.values or (value == "None" and None in option.choices)


def _wrong_choice(option: EngineOption, path: Path, value: Value) -> Problem:
    choices = [str(choice) for choice in option.values]
    text = argument(value)
    same = next((choice for choice in choices if choice.lower() == text.lower()), None)
    close = same or suggestion(text, choices)
    few = len(choices) <= _FEW
    message = (
        f"{option.key} is {shown(value)}, not one of {', '.join(choices) if few else f'its {len(choices)} values'}"
    )
    longer = [choice for choice in choices if choice.startswith((f"{text}_", f"{text}-"))]
    if text == "null":
        return Problem(path, "OPT003", message, _write(text), fix=text)
    if longer and not same:
        hint: str | None = f"write {' or '.join(map(shown, longer))}"
    else:
        hint = f"write {shown(close)}" if close else None if few else f"write one of {', '.join(choices)}"
    return Problem(path, "OPT003", message, hint, fix=None if longer and not same else close)


def _check_json(option: EngineOption, path: Path, value: Value) -> Iterator[Problem]:
    if isinstance(value, str):
        if option.kind != "json-or-text" or re.fullmatch(_BRACED, value):
            yield _json_as_text(option, path, value)
    elif not _right_shape(option, value):
        yield Problem(
            path, "OPT002", f"{option.key} is {shown(value)}, not a {option.shape}", f"write a {option.shape}"
        )
    elif isinstance(value, Mapping) and option.fields is not None:
        yield from check_fields(option.fields, path, value)


def _right_shape(option: EngineOption, value: Value) -> bool:
    if option.kind == "json-or-text":
        return isinstance(value, (Mapping, Sequence))
    return is_list(value) if option.shape == "list" else isinstance(value, Mapping)


def _json_as_text(option: EngineOption, path: Path, value: str) -> Problem:
    try:
        meant = json.loads(value)
    except ValueError:
        meant = None
    fits = meant is not None and _right_shape(option, meant)
    hint = f"write {compact_json(meant)}, without quotes around it" if fits else f"write it as a {option.shape}"
    return Problem(path, "OPT002", f"{option.key} is the text {shown(value)}, not a {option.shape}", hint)


def check_least(options: Options, least: Mapping[str, int]) -> Iterator[Problem]:
    """Numbers below the minimum that the engine accepts."""
    for key, smallest in least.items():
        value = number(options.get(key))
        if value is not None and value < smallest:
            yield outside(key, options[key], f"at least {smallest}")


def check_port(value: Value) -> Iterator[Problem]:
    """A `port` outside the range of ports."""
    port = number(value)
    if port is not None and not 0 <= port <= 65535:
        yield outside("port", value, "between 0 and 65535")


def outside(key: str, value: Value, wanted: str, hint: str | None = None) -> Problem:
    """The problem of a number outside its range."""
    return Problem(
        (key,), "OPT007", f"{key} is {compact_json(value)}, not {wanted}", hint or f"write a number {wanted}"
    )


def meant_fraction(value: float) -> str | None:
    """The hint if a fraction was written as a percentage."""
    return f"it is a fraction: write {value / 100:g}" if 10 <= value <= 100 else None
