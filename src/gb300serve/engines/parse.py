"""Arguments parsed as the engine's own parser does it, with the same error messages.

The engines use argparse, so the parser here is argparse as well, filled from the option table: abbreviations, `--a=b`,
several values after one flag and error texts are the same. `--config FILE` is not opened.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar, NoReturn

from pydantic_core import from_json

from gb300serve.core.errors import CompileError
from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.base import Options, human_int, human_int_or_auto, si_int
from gb300serve.engines.options import POSITIONAL, Choice, EngineOption, JsonField, chosen, is_secret, items
from gb300serve.engines.registry import ENGINES
from gb300serve.engines.tables import OptionTable

_DOCS = "https://errors.pydantic.dev/2.13/v"


def validation_text(title: str, lines: Sequence[str]) -> str:
    """The whole message of pydantic for the class `title`."""
    return "\n".join((f"{len(lines)} validation error{'s' if len(lines) != 1 else ''} for {title}", *lines))


def validation_line(code: str, reason: str, value: Value, field: str = "") -> str:
    """One error of pydantic: the field (none for the whole value), the reason, and the link to its documentation."""
    shown = f"[type={code}, input_value={value!r}, input_type={type(value).__name__}]"
    place = f"{field}\n" if field else ""
    return f"{place}  {reason} {shown}\n    For further information visit {_DOCS}/{code}"


def unexpected(key: str, value: Value) -> str:
    """The error for an unknown key of a configuration class."""
    return validation_line("unexpected_keyword_argument", "Unexpected keyword argument", value, key)


Converter = Callable[[str], Any]

_DECIMAL = r"-?\d+\.\d+"
_BOOLEANS = {"0", "off", "f", "false", "n", "no", "1", "on", "t", "true", "y", "yes"}
_BRACED = r"(?s)\s*\{.*\}\s*"
# An address as CPython prints it; only its form matters.
_FUNCTION = "<function {} at 0x7f3a5c1d8e00>"
_TYPES = {"int": "<class 'int'>", "float": "<class 'float'>"}


def converter(option: EngineOption) -> Converter:
    """The type function that argparse calls for one value of `option`; argparse prints its name."""
    read = partial(_READERS[option.kind], option)
    return _named(partial(_or_unset, option, read) if option.nullable else read, _NAMES.get(option.kind, "str"))


def _named(read: Converter, name: str) -> Converter:
    def convert(word: str) -> Any:
        return read(word)

    convert.__name__ = name
    return convert


def _or_unset(option: EngineOption, read: Converter, word: str) -> Value:
    """`None` and the empty text mean unset; the engine's wrapper, not argparse, rejects invalid values."""
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
    """JSON for one of the engine's configuration classes, validated by pydantic."""
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
    """pydantic's error for one key; its lax mode accepts most texts of another type."""
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


_SHAPES: dict[str, dict[str, Any]] = {
    "many": {"nargs": "+"},
    "optional": {"nargs": "?", "const": True},
    "append": {"action": "append"},
}


class ArgumentRefusedError(CompileError):
    """The engine's parser rejects the arguments: it prints its usage and this line, and exits with 2."""

    engine_exit_code: ClassVar[int] = 2

    def __init__(self, prog: str, reason: str) -> None:
        super().__init__(f"{prog}: error: {reason}")
        self.reason = reason


class _Parser(argparse.ArgumentParser):
    """argparse that raises where it would print and exit."""

    root = ""

    def error(self, message: str) -> NoReturn:
        # The root parser reports unrecognized arguments, the parser of `serve` everything else.
        raise ArgumentRefusedError(self.root if message.startswith("unrecognized arguments") else self.prog, message)


class _Switch(argparse.Action):
    """A boolean: true by its flag and aliases, false by its off flags."""

    def __init__(self, off: Sequence[str], **words: Any) -> None:
        super().__init__(nargs=0, **words)
        self.off = off

    def __call__(self, _parser: object, namespace: object, _values: object, flag: str | None = None) -> None:
        setattr(namespace, self.dest, flag not in self.off)


def parse_argv(argv: Sequence[str], table: OptionTable) -> Mapping[str, Value]:
    """The options of the arguments as a recipe would write them, in the same order.

    The model is under `model` (SGLang: `model_path`) however it was given. Numbers keep their spelling (`1M` stays
    text). Raises ArgumentRefusedError if the engine would exit with 2.
    """
    engine = ENGINES[table.engine]
    arguments = _parser(table).parse_args(engine.parser.rewrite(argv, table))
    found: dict[str, Value] = {
        engine.model_key if key == POSITIONAL else key: value for key, value in vars(arguments).items()
    }
    return found


@lru_cache(maxsize=8)
def _parser(table: OptionTable) -> argparse.ArgumentParser:
    own = ENGINES[table.engine].parser
    parser = _Parser(prog=own.prog, add_help=False, argument_default=argparse.SUPPRESS)
    parser.root = own.root
    for option in table.options():
        if own.has_positional or not option.positional:
            _add(parser, option)
    return parser


def _add(parser: argparse.ArgumentParser, option: EngineOption) -> None:
    if option.positional:
        parser.add_argument(option.key, nargs="?")
    elif option.kind == "bool":
        flags = (option.flag, *option.aliases, *option.off)
        parser.add_argument(*flags, dest=option.key, action=_Switch, off=option.off)
    else:
        shape = {**_SHAPES.get(option.arity, {}), "choices": option.choices or None}
        parser.add_argument(option.flag, *option.aliases, dest=option.key, type=converter(option), **shape)


def normalised(options: Options, table: OptionTable) -> Mapping[str, Value]:
    """The options with the model under its flag, lists for several values, numbers for suffixes, and no nulls."""
    found: dict[str, Value] = {}
    for key, value in options.items():
        if value is not None:
            option = table.find(key)
            plain = ENGINES[table.engine].model_key if key == POSITIONAL else key
            found[plain] = value if option is None else _normal(option, value)
    return found


def _normal(option: EngineOption, value: Value) -> Value:
    if option.arity in ("many", "append"):
        return [_one(option, item) for item in items(value)]
    return _one(option, value)


def _one(option: EngineOption, value: Value) -> Value:
    if not isinstance(value, str) or is_secret(value):
        return value
    if option.folds:
        return value.lower().replace("-", "_")
    if option.kind == "human-int-or-auto":
        return human_int_or_auto(value)
    if option.kind == "si-int":
        return si_int(value)
    return human_int(value) if option.kind == "human-int" else value
