"""One option of an engine, and one field of an option that takes JSON, as the shipped tables describe them.

Named tuples and not dataclasses: their classes are built in a tenth of the time (0.1 ms against 1.1 ms), at each start.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal[
    "bool", "text", "int", "float", "human-int", "human-int-or-auto", "si-int", "json-dataclass", "json-loads",
    "json-or-text",
]  # fmt: skip
Arity: TypeAlias = Literal["one", "many", "optional", "append"]
Choice: TypeAlias = str | int


class JsonField(NamedTuple):
    """One key of a JSON option. `kinds` may hold bool, int, float, text, list, mapping, null; any means unchecked."""

    kinds: frozenset[str]
    choices: tuple[Choice, ...] = ()
    bounds: tuple[tuple[str, float], ...] = ()
    """(`ge`, 1): the comparison with the limit."""


class EngineOption(NamedTuple):
    """An option under its key in a recipe (the flag with underscores)."""

    key: str
    flag: str
    """Empty for the positional model."""
    kind: Kind
    arity: Arity
    aliases: tuple[str, ...]
    off: tuple[str, ...]
    """The flags that say `false`, the one to print first."""
    choices: tuple[Choice | None, ...]
    """As the engine's refusal lists them. Up to 0.30 the word `None` is listed and not taken; later None is both."""
    folds: bool
    """Case and dashes do not count when the engine compares with the choices."""
    nullable: bool
    """The word `None` means unset."""
    plain: bool
    """The engine hands the text to json.loads itself, which words its refusal differently."""
    shape: Literal["mapping", "list"]
    default: str | int | float | None
    fields: Mapping[str, JsonField] | None
    config: str | None
    """The engine's configuration class behind a JSON option, as its refusals name it."""
    refusal: str | None = None
    """How the engine words its refusal of text that is no JSON, with `{word}` and `{error}`; None for the usual one."""

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
    """The option that one row of a table says; what the row leaves out is the common case."""
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
