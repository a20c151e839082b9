"""One option: its row in a table, its arguments, the fields of its JSON."""

import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from gb300serve.core.text import suggestion
from gb300serve.core.values import Value, compact_json
from gb300serve.engines.base import Options, Path, Problem, is_whole

Kind: TypeAlias = Literal[
    "bool", "text", "int", "float", "human-int", "human-int-or-auto", "si-int", "json-dataclass", "json-loads",
    "json-or-text",
]  # fmt: skip
Arity: TypeAlias = Literal["one", "many", "optional", "append"]
Choice: TypeAlias = str | int


class JsonField(NamedTuple):
    """One key of a JSON option. `kinds`: bool, int, float, text, list, mapping, null; any means unchecked."""

    kinds: frozenset[str]
    choices: tuple[Choice, ...] = ()
    bounds: tuple[tuple[str, float], ...] = ()
    """(`ge`, 1): the comparison with the limit."""


class EngineOption(NamedTuple):
    """An option; its key in a recipe is the flag with underscores."""

    key: str
    flag: str
    """Empty for the positional model."""
    kind: Kind
    arity: Arity
    aliases: tuple[str, ...]
    off: tuple[str, ...]
    """The flags for `false`; the first one is printed."""
    choices: tuple[Choice | None, ...]
    """As the engine's error message lists them. Up to 0.30 `None` is listed but rejected; later it is accepted."""
    folds: bool
    """The engine ignores case and dashes when it compares with the choices."""
    nullable: bool
    """The text `None` means unset."""
    plain: bool
    """The engine calls json.loads itself, and its error message differs."""
    shape: Literal["mapping", "list"]
    default: str | int | float | None
    fields: Mapping[str, JsonField] | None
    config: str | None
    """The engine's configuration class behind a JSON option, as its error messages name it."""
    refusal: str | None = None
    """The engine's error message for invalid JSON, with `{word}` and `{error}`; None for the usual one."""

    @property
    def takes_json(self) -> bool:
        return self.kind.startswith("json")

    @property
    def values(self) -> tuple[Choice, ...]:
        """The choices that a recipe may write."""
        return tuple(choice for choice in self.choices if choice is not None and choice != "None")

    @property
    def positional(self) -> bool:
        return not self.flag

    @property
    def shown(self) -> str:
        """The flag, or the key of the positional."""
        return self.flag or self.key


def read_option(key: str, raw: Mapping[str, Any]) -> EngineOption:
    """The option of one row of a table; missing keys mean the common case."""
    fields = raw.get("fields")
    return EngineOption(
        key=key,
        flag=raw.get("flag", "--" + key.replace("_", "-")),
        kind=raw.get("kind", "text"),
        arity=raw.get("arity", "one"),
        aliases=tuple(raw.get("aliases", ())),
        off=tuple(raw.get("off", ())),
        choices=tuple(raw.get("choices", ())),
        folds=raw.get("folds", False),
        nullable=raw.get("nullable", False),
        plain=raw.get("plain", False),
        shape=raw.get("shape", "mapping"),
        default=raw.get("default"),
        fields={name: _read_field(rule) for name, rule in fields.items()} if fields else None,
        config=raw.get("class"),
        refusal=raw.get("refusal"),
    )


def _read_field(raw: str | Mapping[str, Any]) -> JsonField:
    if isinstance(raw, str):
        return JsonField(frozenset(raw.split("|")))
    bounds = tuple((name, raw[name]) for name in ("gt", "ge", "lt", "le") if name in raw)
    return JsonField(frozenset(raw["kind"].split("|")), tuple(raw.get("choices", ())), bounds)


_BY_NAME = r"\$\{secret:[^}]+\}"
_NEGATIVE_INTEGER = r"-\d+"


def is_secret(value: Value) -> bool:
    """Whether the value is the name of a secret that is read at launch."""
    return isinstance(value, str) and value.startswith("$") and re.fullmatch(_BY_NAME, value) is not None


def reads_as_flag(word: str) -> bool:
    """Whether the engine's parser treats the word as a flag.

    Not a negative integer: the parser has no flags that look like numbers. But a negative fraction is one: the engine
    treats every word with a dash at its beginning and a dot inside as a dotted JSON key.
    """
    return len(word) > 1 and word.startswith("-") and re.fullmatch(_NEGATIVE_INTEGER, word) is None


def argument(value: Value) -> str:
    """One value as one argument: text unchanged, numbers as written, mappings and lists as compact JSON."""
    return value if isinstance(value, str) else compact_json(value)


def flag_arguments(flag: str, value: Value) -> tuple[str, ...]:
    """A flag and its one value; a value that looks like a flag is joined with `=`."""
    text = argument(value)
    return (f"{flag}={text}",) if reads_as_flag(text) else (flag, text)


def option_arguments(option: EngineOption, value: Value) -> tuple[str, ...]:
    """The arguments for a checked `value`; none for null."""
    if value is None:
        return ()
    if option.positional:
        return (argument(value),)
    if option.kind == "bool" or (option.arity == "optional" and value is True):
        return (option.flag,) if value else option.off[:1]
    if option.arity == "append":
        return tuple(text for item in items(value) for text in flag_arguments(option.flag, item))
    if option.arity == "many":
        return (option.flag, *map(argument, items(value)))
    return flag_arguments(option.flag, value)


def items(value: Value) -> Sequence[Value]:
    """The values of an option that takes several; a single one may be written without a list."""
    return (value,) if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence) else value


_COMPARE = {"gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le}
_BOUND = {"gt": "greater than", "ge": "at least", "lt": "less than", "le": "at most"}
WANTED = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "text": "text",
    "list": "a list",
    "mapping": "a mapping",
    "null": "null",
}


def check_fields(fields: Mapping[str, JsonField], path: Path, value: Mapping[str, Value]) -> Iterator[Problem]:
    """Unknown keys, and values that the configuration class rejects."""
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            close = suggestion(key, fields)
            hint = f"write '{close}'" if close else f"it takes {', '.join(sorted(fields))}"
            yield Problem((*path, key), "OPT006", f"{path[0]} has no '{key}'", hint, fix=close)
        else:
            yield from _check_field(field, (*path, key), item)


def _check_field(field: JsonField, path: Path, value: Value) -> Iterator[Problem]:
    place = ".".join(map(str, path))
    if "any" in field.kinds:
        return
    if not field.kinds & _kinds(value):
        wanted = " or ".join(WANTED[kind] for kind in WANTED if kind in field.kinds)
        yield Problem(path, "OPT002", f"{place} is {compact_json(value)}, not {wanted}")
    elif field.choices and value is not None and not chosen(field, value):
        close = suggestion(str(value), map(str, field.choices))
        hint = f"write {close}" if close else f"write one of {', '.join(map(str, field.choices))}"
        yield Problem(path, "OPT003", f"{place} is {compact_json(value)}, which is not a valid value", hint)
    elif isinstance(value, (int, float)):
        for name, limit in field.bounds:
            if not _COMPARE[name](value, limit):
                message = f"{place} is {compact_json(value)}, not {_BOUND[name]} {limit}"
                yield Problem(path, "OPT007", message, f"write a number {_BOUND[name]} {limit}")


def chosen(field: JsonField, value: Value) -> bool:
    """Whether the value is one of the choices; as in the engine, case and dashes do not count."""
    folded = {str(choice).lower().replace("-", "_") for choice in field.choices}
    return str(value).lower().replace("-", "_") in folded


def _kinds(value: Value) -> frozenset[str]:
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


POSITIONAL = "model_tag"


def plain_arguments(key: str, value: Value) -> tuple[str, ...]:
    """`--key value` with dashes: true is the bare flag, false and null are left out, a list is several arguments."""
    flag = "--" + key.replace("_", "-")
    if value is None or value is False:
        return ()
    if value is True:
        return (flag,)
    return (flag, *map(argument, value)) if isinstance(value, list | tuple) else flag_arguments(flag, value)


def model_first(options: Options) -> Iterable[tuple[str, Value]]:
    """The options with the positional model first: after an option with several values it would be one of them."""
    if POSITIONAL in options:
        yield POSITIONAL, options[POSITIONAL]
    for key, value in options.items():
        if key != POSITIONAL:
            yield key, value


def texts(value: Value) -> tuple[str, ...]:
    """The texts of an option that takes one or several values."""
    return tuple(item for item in items(value) if isinstance(item, str))


def first_text(options: Options, *keys: str) -> str | None:
    """The first text among the values of `keys`."""
    return next((found for key in keys if isinstance(found := options.get(key), str)), None)


def whole(value: Value, default: int) -> int:
    """The whole number, or the default for anything else."""
    return value if is_whole(value) else default
