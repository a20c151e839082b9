"""How an option is said and a model found when no table speaks: what the engines of this family share."""

from collections.abc import Iterable

from gb300serve.core.values import Value
from gb300serve.engines.base import Options
from gb300serve.engines.forms import flag_words, items, word

POSITIONAL = "model_tag"
MODEL_KEYS = {"vllm": "model", "sglang": "model_path"}
"""The option that names the model by a flag."""


def plain_words(key: str, value: Value) -> tuple[str, ...]:
    """`--key value` with dashes: true is the bare flag, false and null say nothing, a list is several words."""
    flag = "--" + key.replace("_", "-")
    if value is None or value is False:
        return ()
    if value is True:
        return (flag,)
    if isinstance(value, list | tuple):
        return (flag, *map(word, value))
    return flag_words(flag, value)


def model_first(options: Options) -> Iterable[tuple[str, Value]]:
    """The options with the positional model in front: behind an option that takes several words it would be one."""
    if POSITIONAL in options:
        yield POSITIONAL, options[POSITIONAL]
    for key, value in options.items():
        if key != POSITIONAL:
            yield key, value


def texts(value: Value) -> tuple[str, ...]:
    """The texts of an option that takes one or several."""
    return tuple(item for item in items(value) if isinstance(item, str))


def first_text(options: Options, *keys: str) -> str | None:
    """The first of `keys` that holds text."""
    return next((found for key in keys if isinstance(found := options.get(key), str)), None)


def whole(value: Value, default: int) -> int:
    """A whole number, or the default where none stands."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default
