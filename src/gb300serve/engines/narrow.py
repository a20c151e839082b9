"""Reading a value as the type that an option has; anything else counts as not given."""

from collections.abc import Callable, Sequence
from typing import TypeGuard

from gb300serve.core.values import Value
from gb300serve.engines.human import human_int_or_auto, si_int

# No option means a larger number, and arithmetic with one of 400 digits fails.
_LARGEST = 2**63


def is_whole(value: Value) -> TypeGuard[int]:
    """Whether the value is a whole number, and not true or false."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_list(value: Value) -> TypeGuard[Sequence[Value]]:
    """Whether the value is a list."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def text(value: Value) -> str | None:
    """Text, or None."""
    return value if isinstance(value, str) else None


def flag(value: Value) -> bool | None:
    """True or false, or None."""
    return value if isinstance(value, bool) else None


def number(value: Value) -> float | None:
    """A number, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > _LARGEST:
        return None
    return float(value)


def length(value: Value) -> int | None:
    """A whole number as vLLM reads it, also with a suffix (`1M`); `auto` is -1; None for anything else."""
    return _read(value, human_int_or_auto)


def si_length(value: Value) -> int | None:
    """A whole number as SGLang reads it, also with a suffix (`1Mi`); None for anything else."""
    return _read(value, si_int)


def _read(value: Value, read: Callable[[str], int]) -> int | None:
    if isinstance(value, str):
        try:
            value = read(value)
        except ValueError:
            return None
    return value if is_whole(value) and abs(value) <= _LARGEST else None
