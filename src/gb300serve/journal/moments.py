"""Moments as they are written down: UTC, to the second in names and to the millisecond in files."""

from datetime import UTC, datetime


def written(at: float) -> str:
    """Seconds since 1970 as `2026-11-29T19:50:03.123Z`."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
