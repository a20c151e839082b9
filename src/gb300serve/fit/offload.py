"""The staircase: which parameters vLLM's UVA backend moves to the host, and how much that is."""

from collections.abc import Sequence
from dataclasses import dataclass

from gb300serve.fit.checkpoint import GIB, Parameter


@dataclass(frozen=True, slots=True)
class OffloadResult:
    """What was asked for and what moves. `unmatched` are the patterns that no known parameter has."""

    asked_gib: float
    moved: tuple[Parameter, ...]
    unmatched: tuple[str, ...] = ()

    @property
    def moved_bytes(self) -> int:
        return sum(parameter.bytes for parameter in self.moved)

    @property
    def moved_gib(self) -> float:
        return self.moved_bytes / GIB

    @property
    def rounded_bytes(self) -> int:
        """The bound when every pinned tensor is rounded up to a power of two, as some allocators do."""
        return sum(rounded_up(parameter.bytes) for parameter in self.moved)


def rounded_up(size: int) -> int:
    """The next power of two at or above `size` bytes."""
    return 1 << (size - 1).bit_length()


def matches(pattern: str, name: str) -> bool:
    """Whole segments only, as the engine tests it: `.pattern.` occurs in `.name.`."""
    return f".{pattern}." in f".{name}."


def offload(parameters: Sequence[Parameter], asked_gib: float, patterns: Sequence[str]) -> OffloadResult:
    """Walk the parameters in order; the running total is tested before each, so the last one overshoots.

    Without patterns every parameter matches. Source: vLLM's `offloader/uva.py`.
    """
    budget = int(asked_gib * GIB)
    chosen = parameters if not patterns else [p for p in parameters if any(matches(word, p.name) for word in patterns)]
    moved: list[Parameter] = []
    total = 0
    for parameter in chosen:
        if total >= budget:
            break
        moved.append(parameter)
        total += parameter.bytes
    unmatched = tuple(word for word in patterns if not any(matches(word, p.name) for p in parameters))
    return OffloadResult(asked_gib, tuple(moved), unmatched)
