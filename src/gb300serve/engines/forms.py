"""From a checked value to the words of the command line: the one place that knows the forms."""

import re
from collections.abc import Mapping, Sequence

from gb300serve.core.values import Value, compact_json
from gb300serve.engines.option import EngineOption

_BY_NAME = r"\$\{secret:[^}]+\}"
_NEGATIVE_INTEGER = r"-\d+"


def is_secret(value: Value) -> bool:
    """Whether the value is read on the client at launch and stands here by its name only."""
    return isinstance(value, str) and value.startswith("$") and re.fullmatch(_BY_NAME, value) is not None


def reads_as_flag(word: str) -> bool:
    """Whether the engine's parser takes the word for a flag when it stands alone.

    Negative integers do not count: the parser has no flags that look like numbers. Negative fractions do: the engine
    searches every word that begins with a dash for a dot and takes it for a dotted JSON key.
    """
    return len(word) > 1 and word.startswith("-") and re.fullmatch(_NEGATIVE_INTEGER, word) is None


def word(value: Value) -> str:
    """One value as one word: text as it is, numbers as written, mappings and lists as compact JSON."""
    return value if isinstance(value, str) else compact_json(value)


def flag_words(flag: str, value: Value) -> tuple[str, ...]:
    """A flag and its one value; a value that would read as a flag is joined with `=`."""
    said = word(value)
    return (f"{flag}={said}",) if reads_as_flag(said) else (flag, said)


def words(option: EngineOption, value: Value) -> tuple[str, ...]:
    """The words that say `value`; none for null. The value has passed the check."""
    if value is None:
        return ()
    if option.positional:
        return (word(value),)
    if option.kind == "bool" or (option.arity == "optional" and value is True):
        return (option.flag,) if value else option.off[:1]
    if option.arity == "append":
        return tuple(said for item in items(value) for said in flag_words(option.flag, item))
    if option.arity == "many":
        return (option.flag, *map(word, items(value)))
    return flag_words(option.flag, value)


def items(value: Value) -> Sequence[Value]:
    """The values of an option that takes several: a single one may be written without a list."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        return (value,)
    return value
