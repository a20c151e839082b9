"""What the rest of the program asks of an engine."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeGuard

from gb300serve.core.diagnostics import Severity
from gb300serve.core.values import Value

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding about the options. `path` leads from `engine.options` to the place, keys and list indexes."""

    path: Path
    code: str
    message: str
    hint: str | None = None
    severity: Severity | None = None
    """Overrides the severity of the catalogue."""


def dotted(path: Path) -> str:
    """`engine.options.cpu_offload_params.0`, the way that diagnostics address a place."""
    return ".".join(map(str, ("engine", "options", *path)))


Options: TypeAlias = Mapping[str, Value]
"""`engine.options` of a resolved recipe. A secret's value is the text `${secret:NAME}`."""


class Engine(Protocol):
    """One engine. Everything is pure; `version` is the recipe's `engine.version`, None when it names none."""

    @property
    def name(self) -> str: ...

    def check(self, options: Options, version: str | None) -> tuple[Problem, ...]:
        """Everything wrong with the options, in their order; notes stand last."""
        ...

    def argv(self, options: Options, version: str | None) -> tuple[str, ...]:
        """The engine's words: the positional model first and bare, then the options in their order.

        Options that no table knows are said by the common form (`--key value`), so that a plan of a recipe that does
        not pass the check can still be shown.
        """
        ...

    def open_list(self, options: Options, version: str | None) -> str | None:
        """The key of the last option when it would swallow bare words printed after it, else None."""
        ...

    def served_names(self, options: Options) -> tuple[str, ...]:
        """The names that `/v1/models` will list; the model's path when none is given, empty without a model."""
        ...

    def model_path(self, options: Options) -> str | None:
        """The model as the engine is told it: a path in the container or a repository."""
        ...

    def port(self, options: Options) -> int:
        """The port that the engine listens on, in the container."""
        ...


_SUFFIXED = r"(\d+(?:\.\d+)?)([kKmMgGtT])"
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SI_SUFFIXED = r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)"
_SI = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_IEC = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
AUTO = -1


def human_int(text: str) -> int:
    """The number that `text` says. Decimal suffixes take a fraction (`1.5k`), binary ones do not (`1.5K`).

    Raises ValueError for anything that vLLM's `human_readable_int` refuses.
    """
    match = re.fullmatch(_SUFFIXED, text.strip())
    if match is None:
        return int(text)
    number, suffix = match.groups()
    if suffix in _DECIMAL:
        return int(float(number) * _DECIMAL[suffix])
    return int(number) * _BINARY[suffix]


def human_int_or_auto(text: str) -> int:
    """As `human_int`; `auto` and `-1` are -1: as long as memory allows."""
    return AUTO if text.strip().lower() in ("auto", "-1") else human_int(text)


def si_int(text: str) -> int:
    """The number that `text` says to SGLang (sglang.srt.utils.common.human_readable_int, 0.5.20 to 0.5.23).

    `1M` is 1,000,000 and `1Mi` 1,048,576; case counts, so `1m` and `8K` are refused. Raises ValueError.
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
