"""A fact that is not known, and why: every fact of a host may be missing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Missing:
    """`why` is a clause without a full stop. `asked` is False where asking this machine would say nothing."""

    why: str
    asked: bool = True
