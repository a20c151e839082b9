"""Sizes as messages print them."""

GIB = 1024**3
MIB = 1024**2


def gib(size: float) -> str:
    """Bytes as GiB; below one as MiB."""
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"


def some(names: tuple[str, ...]) -> str:
    """The first of several names, and how many more."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}"
