"""Ranges that an engine checks after its parser took a number."""

from collections.abc import Iterator, Mapping

from gb300serve.core.values import Value, compact_json
from gb300serve.engines.base import Options
from gb300serve.engines.narrow import number
from gb300serve.engines.problem import Problem


def check_least(options: Options, least: Mapping[str, int]) -> Iterator[Problem]:
    """Numbers below the smallest that the engine takes."""
    for key, smallest in least.items():
        found = number(options.get(key))
        if found is not None and found < smallest:
            yield outside(key, options[key], f"at least {smallest}")


def check_port(value: Value) -> Iterator[Problem]:
    """`port` outside what a socket can have."""
    port = number(value)
    if port is not None and not 0 <= port <= 65535:
        yield outside("port", value, "between 0 and 65535")


def outside(key: str, value: Value, wanted: str, hint: str | None = None) -> Problem:
    """The problem of a number of the wrong size."""
    return Problem(
        (key,), "OPT007", f"{key} is {compact_json(value)}, not {wanted}", hint or f"write a number {wanted}"
    )


def meant_fraction(value: float) -> str | None:
    """The hint where a percentage stands for a fraction."""
    return f"a fraction is meant: write {value / 100:g}" if 10 <= value <= 100 else None
