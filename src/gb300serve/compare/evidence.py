"""Figures of two releases side by side: the same figure on the same workload."""

from collections.abc import Sequence
from dataclasses import dataclass

from gb300serve.recipe.model import EvidenceSection


@dataclass(frozen=True, slots=True)
class Pair:
    """One figure; None on the side that has none."""

    figure: str
    unit: str
    workload: str
    before: float | None
    after: float | None

    @property
    def percent(self) -> float | None:
        """How much more `after` is."""
        if self.before is None or self.after is None or self.before == 0:
            return None
        return 100 * (self.after - self.before) / self.before


def pairs(before: Sequence[EvidenceSection], after: Sequence[EvidenceSection]) -> tuple[Pair, ...]:
    """In the order of `before`, then what only `after` has. Figures on different workloads are never one pair."""
    old, new = _by_load(before), _by_load(after)
    keys = (*old, *(key for key in new if key not in old))
    return tuple(Pair(*key, old.get(key), new.get(key)) for key in keys)


def _by_load(figures: Sequence[EvidenceSection]) -> dict[tuple[str, str, str], float]:
    return {(one.figure, one.unit, one.workload): one.value for one in figures}
