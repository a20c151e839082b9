"""The engine's echo of its arguments, read back into options.

vLLM prints `non-default args: {…}`; SGLang `server_args={…}` or `server_args=ServerArgs(…)`, with every argument.
"""

import ast
import re
import warnings
from math import isfinite
from typing import Any

PREFIX = "non-default args:"
_SGLANGS = "server_args="
PREFIXES = (PREFIX, _SGLANGS)
_LARGEST = 2**63
_ENUM = re.compile(r"<[\w.]+: ([^<>]*)>")
_OBJECT = re.compile(r"<[^<>]*>")


def echoes(text: str) -> bool:
    """Whether the line holds the echo."""
    return PREFIX in text or _SGLANGS in text


def arguments(text: str) -> dict[str, Any] | None:
    """The options of the line (all of it, or what follows its header); None where it is no such line, or cut."""
    prefix = next((prefix for prefix in PREFIXES if prefix in text), None)
    if prefix is None:
        return None
    words = _OBJECT.sub("None", _ENUM.sub(r"\1", text.partition(prefix)[2].strip()))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SyntaxWarning)  # of a damaged line; else it is printed
            found = _value(ast.parse(words, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return found if isinstance(found, dict) else None


def _value(node: ast.expr) -> Any:
    """Literals, and configuration objects as mappings of their fields; raises ValueError for anything else."""
    match node:
        case ast.Dict(keys, values):
            pairs = zip(keys, values, strict=True)
            return {str(_value(key)): _value(value) for key, value in pairs if key is not None}
        case ast.List(items) | ast.Tuple(items) | ast.Set(items):
            return [_value(item) for item in items]
        case ast.Name():  # `inf`, `nan`: no option's value
            return None
        case ast.Call(args=[], keywords=fields):
            return {field.arg: _value(field.value) for field in fields if field.arg is not None}
        case _:
            return _scalar(ast.literal_eval(node))


def _scalar(value: object) -> object:
    """What JSON has; anything else is its text, and a number that no option can have is none."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST else None
    return value if value is None or isinstance(value, str) else str(value)
