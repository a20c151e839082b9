"""Moments as they are written down: UTC, to the second in names and to the millisecond in files."""

from datetime import UTC, datetime
from functools import lru_cache


def written(at: float) -> str:
    """Seconds since 1970 as `2026-11-29T19:50:03.123Z`."""
    milliseconds = round(at * 1000)
    return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@lru_cache(maxsize=64)
def _second(whole: int) -> str:
    """Lines of a log come by the thousand a second."""
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def read(text: object) -> float | None:
    """The same back; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def stamp(at: float) -> str:
    """Seconds since 1970 as `20261129T195003Z`: for names."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%SZ")
