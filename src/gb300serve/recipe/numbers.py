"""Numbers of a recipe that are kept as they were written: `91.0` stays `91.0`."""

from typing import Any


def read_number(value: Any) -> Any:
    """An integer or a decimal fraction, unchanged; raises ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("write a number")  # noqa: TRY004 - pydantic turns ValueError into a finding
    return value


def read_size(value: Any) -> Any:
    """The same, 0 or more."""
    if read_number(value) < 0:
        raise ValueError("write 0 or a positive number")
    return value


def read_positive(value: Any) -> Any:
    """The same, above 0."""
    if read_number(value) <= 0:
        raise ValueError("write a number above 0")
    return value
