"""getrlimit(2): how much memory a process of this user may lock."""

from dataclasses import dataclass

UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class Limit:
    """Bytes; -1 is no limit, as `--ulimit` has it."""

    soft: int
    hard: int
