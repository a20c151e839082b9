"""nvidia-smi's `--format=csv`: a head with names and units, a row a thing, brackets where a value is missing."""

import re
from collections.abc import Iterator

MIB = 1024**2
# `[N/A]`, `[Not Supported]`, `[Insufficient Permissions]`, `[Unknown Error]`, and `N/A` in older releases.
_NOTHING = re.compile(r"\[.*\]|N/A|")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def rows(text: str) -> Iterator[dict[str, str]]:
    """Values by column name without its unit; a value that is missing is left out, and so are rows without any."""
    head, *lines = [line for line in text.splitlines() if line.strip()] or [""]
    names = [name.strip().partition(" [")[0] for name in head.split(",")]
    for line in lines:
        values = (value.strip() for value in line.split(",", len(names) - 1))
        found = {name: value for name, value in zip(names, values, strict=False) if not _NOTHING.fullmatch(value)}
        if found:
            yield found


def number(value: str | None) -> float | None:
    """`143771 MiB` → 143771.0, `700.00 W` → 700.0."""
    found = _NUMBER.match(value or "")
    return float(found[0]) if found else None


def whole(value: str | None) -> int | None:
    """A number without a fraction, such as an index or a process id."""
    return int(value) if value and value.isdecimal() else None


def mebibytes(value: str | None) -> int | None:
    """`143771 MiB` → bytes."""
    found = number(value)
    return None if found is None else round(found) * MIB
