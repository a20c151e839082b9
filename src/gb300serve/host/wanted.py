"""What to look at for one release: paths and ports, without anything that plans them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Model:
    """A checkpoint's directory on the host; `repo` and `revision` are what the recipe says of it."""

    path: str
    repo: str | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """`sources` are those of all mounts, `patches` are files with the sha256 that they should have."""

    image: str
    models: tuple[Model, ...] = ()
    caches: tuple[str, ...] = ()
    """Directories that the container writes."""
    sources: tuple[str, ...] = ()
    patches: tuple[tuple[str, str], ...] = ()
    ports: tuple[int, ...] = ()
    tuning: tuple[str, str] | None = None
    """The host's directory of the engine's cache, and the beginning of the expected identity."""
