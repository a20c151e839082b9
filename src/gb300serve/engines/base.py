"""Options, their problems, and values in the types that options have."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

from gb300serve.core.diagnostics import Severity
from gb300serve.core.values import Value

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding about the options. `path` is relative to `engine.options`: keys and list indexes."""

    path: Path
    code: str
    message: str
    hint: str | None = None
    severity: Severity | None = None
    """Overrides the severity of the catalogue."""
    fix: str | None = field(default=None, compare=False)
    """As in a diagnostic."""


def dotted(path: Path) -> str:
    """The address of a place in diagnostics, such as `engine.options.cpu_offload_params.0`."""
    return ".".join(map(str, ("engine", "options", *path)))


Options: TypeAlias = Mapping[str, Value]
"""`engine.options` of a resolved recipe. The value of a secret is the text `${secret:NAME}`."""


_SUFFIXED = r"(\d+(?:\.\d+)?)([kKmMgGtT])"
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SI_SUFFIXED = r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)"
_SI = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_IEC = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
AUTO = -1


def human_int(text: str) -> int:
    """A number with a suffix. Decimal suffixes may have a fraction (`1.5k`), binary ones may not (`1.5K`).

    Raises ValueError for anything that vLLM's `human_readable_int` rejects.
    """
    match = re.fullmatch(_SUFFIXED, text.strip())
    if match is None:
        return int(text)
    number, suffix = match.groups()
    return int(float(number) * _DECIMAL[suffix]) if suffix in _DECIMAL else int(number) * _BINARY[suffix]


def human_int_or_auto(text: str) -> int:
    """As `human_int`; `auto` and `-1` are -1: as much as memory allows."""
    return AUTO if text.strip().lower() in ("auto", "-1") else human_int(text)


def si_int(text: str) -> int:
    """A number as SGLang reads it (sglang.srt.utils.common.human_readable_int, 0.5.20 to 0.5.23).

    `1M` is 1,000,000 and `1Mi` 1,048,576; suffixes are case-sensitive, so `1m` and `8K` raise ValueError.
    """
    match = re.fullmatch(_SI_SUFFIXED, text.strip())
    if match is None:
        return int(text)
    number, suffix = match.groups()
    if suffix in _IEC:
        return int(number) * _IEC[suffix]
    digits, _, fraction = number.partition(".")
    scale: int = 10 ** len(fraction)
    return int(digits + fraction) * _SI[suffix] // scale


# No option needs a larger number, and arithmetic with 400 digits fails.
_LARGEST = 2**63


def is_whole(value: Value) -> TypeGuard[int]:
    """Whether the value is a whole number; true and false are not."""
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
