"""One word of an option read by its type. Refusals carry the engine's own texts."""

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic_core import from_json

from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.human import human_int, human_int_or_auto, si_int
from gb300serve.engines.json_fields import chosen
from gb300serve.engines.option import Choice, EngineOption, JsonField
from gb300serve.engines.pydantic_text import unexpected, validation_line, validation_text

Converter = Callable[[str], Any]

_DECIMAL = r"-?\d+\.\d+"
_BOOLEANS = {"0", "off", "f", "false", "n", "no", "1", "on", "t", "true", "y", "yes"}
_BRACED = r"(?s)\s*\{.*\}\s*"
# An address as CPython prints it; only its form is ever matched.
_FUNCTION = "<function {} at 0x7f3a5c1d8e00>"
_TYPES = {"int": "<class 'int'>", "float": "<class 'float'>"}


def converter(option: EngineOption) -> Converter:
    """The type function that argparse calls for one word of `option`; its name is what argparse prints."""
    read = partial(_READERS[option.kind], option)
    return _named(partial(_or_unset, option, read) if option.nullable else read, _NAMES.get(option.kind, "str"))


def _named(read: Converter, name: str) -> Converter:
    def convert(word: str) -> Any:
        return read(word)

    convert.__name__ = name
    return convert


def _or_unset(option: EngineOption, read: Converter, word: str) -> Value:
    """`None` and the empty word mean unset; a wrong one is refused by the engine's wrapper, not by argparse."""
    if word in ("", "None"):
        return None
    try:
        found: Value = read(word)
    except ValueError as error:
        kind = _TYPES.get(option.kind) or _FUNCTION.format(_NAMES.get(option.kind, "str"))
        raise argparse.ArgumentTypeError(f"Value {word} cannot be converted to {kind}.") from error
    return found


def _text(option: EngineOption, word: str) -> Value:
    return word.lower().replace("-", "_") if option.folds else word


def _int(_option: EngineOption, word: str) -> Value:
    return int(word)


def _float(_option: EngineOption, word: str) -> Value:
    number = float(word)
    if re.fullmatch(r"-?\d+", word):
        return int(word)
    return WrittenFloat(word) if re.fullmatch(_DECIMAL, word) else number


def _human(option: EngineOption, word: str) -> Value:
    try:
        number = human_int_or_auto(word) if option.kind == "human-int-or-auto" else human_int(word)
    except ValueError as error:
        if match := re.fullmatch(r"(\d+\.\d+)([KMGT])", word.strip()):
            said, suffix = match.groups()
            raise argparse.ArgumentTypeError(
                f"Decimals are not allowed with binary suffixes like {suffix}. "
                f"Did you mean to use {said}{suffix.lower()} instead?"
            ) from error
        raise
    return number if re.fullmatch(r"-?\d+", word) else word


def _si(_option: EngineOption, word: str) -> Value:
    try:
        number = si_int(word)
    except ValueError as error:
        raise argparse.ArgumentTypeError(_si_refusal(word.strip())) from error
    return number if re.fullmatch(r"-?\d+", word) else word


def _si_refusal(word: str) -> str:
    if match := re.fullmatch(r"(\d+)\.\d+([KMGT]i)", word):
        whole, suffix = match.groups()
        return (
            f"Decimals are not allowed with IEC suffixes like '{suffix}'. Use an integer IEC value such as "
            f"'{whole}{suffix}', or an SI value such as '{word.removesuffix(suffix)}{suffix[0]}'."
        )
    return (
        f"Invalid integer value: '{word}'. Use a plain integer, SI suffixes (1k, 1M), or IEC suffixes (1Ki, 1Mi). "
        "Suffixes are case-sensitive."
    )


def _loads(option: EngineOption, word: str) -> Value:
    try:
        found: Value = json.loads(word, parse_float=WrittenFloat)
    except ValueError as error:
        if option.refusal is not None:
            raise argparse.ArgumentTypeError(option.refusal.format(word=word, error=error)) from error
        if option.plain:
            raise
        kind = _FUNCTION.format("loads")
        raise argparse.ArgumentTypeError(f"Value {word} cannot be converted to {kind}.") from error
    return found


def _json_or_text(option: EngineOption, word: str) -> Value:
    return _loads(option, word) if re.fullmatch(_BRACED, word) else word


def _dataclass(option: EngineOption, word: str) -> Value:
    """JSON for one of the engine's configuration classes, which pydantic validates as it parses."""
    title = option.config or "".join(part.capitalize() for part in option.key.split("_"))
    try:
        from_json(word)
    except ValueError as error:
        raise _invalid(title, [validation_line("json_invalid", f"Invalid JSON: {error}", word)]) from error
    found: Value = json.loads(word, parse_float=WrittenFloat)
    if not isinstance(found, dict):
        raise _invalid(title, [validation_line("dataclass_type", "Input should be an object", found)])
    if lines := [line for key, value in found.items() for line in _refused(option.fields, key, value)]:
        raise _invalid(title, lines)
    return found


def _refused(fields: Mapping[str, JsonField] | None, key: str, value: Value) -> Iterator[str]:
    """pydantic's complaint about one key: its lax mode reads most words of another type, so few are left."""
    field = fields.get(key) if fields is not None else JsonField(frozenset({"any"}))
    if field is None:
        yield unexpected(key, value)
    elif field.choices and value is not None and not chosen(field, value):
        yield validation_line("literal_error", f"Input should be {_listed(field.choices)}", value, key)
    elif field.kinds <= {"bool", "null"} and isinstance(value, str) and value.lower() not in _BOOLEANS:
        yield validation_line("bool_parsing", "Input should be a valid boolean, unable to interpret input", value, key)


def _listed(choices: Sequence[Choice]) -> str:
    """`'a', 'b' or 'c'`."""
    *most, last = map(repr, choices)
    return f"{', '.join(most)} or {last}" if most else last


def _invalid(title: str, lines: list[str]) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(validation_text(title, lines))


_READERS: dict[str, Callable[[EngineOption, str], Value]] = {
    "text": _text,
    "int": _int,
    "float": _float,
    "human-int": _human,
    "human-int-or-auto": _human,
    "si-int": _si,
    "json-loads": _loads,
    "json-or-text": _json_or_text,
    "json-dataclass": _dataclass,
}
_NAMES = {
    "int": "int",
    "float": "float",
    "human-int": "human_readable_int",
    "human-int-or-auto": "human_readable_int_or_auto",
    "si-int": "human_readable_int",
    "json-loads": "loads",
    "json-or-text": "union_dict_and_str",
    "json-dataclass": "parse_dataclass",
}
