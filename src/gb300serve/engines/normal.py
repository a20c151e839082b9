"""Options in one spelling, so that two ways to say the same compare equal."""

from collections.abc import Mapping

from gb300serve.core.values import Value
from gb300serve.engines.base import Options
from gb300serve.engines.common import MODEL_KEYS, POSITIONAL
from gb300serve.engines.forms import is_secret, items
from gb300serve.engines.human import human_int, human_int_or_auto, si_int
from gb300serve.engines.option import EngineOption
from gb300serve.engines.table import OptionTable


def normalised(options: Options, table: OptionTable) -> Mapping[str, Value]:
    """The options with the model under its flag, lists where several are taken, suffixes read, and nulls left out."""
    found: dict[str, Value] = {}
    for key, value in options.items():
        if value is not None:
            option = table.find(key)
            plain = MODEL_KEYS[table.engine] if key == POSITIONAL else key
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
