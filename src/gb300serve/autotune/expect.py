"""What a release expects of the tuning cache, and when a log's words tell that it will be missed."""

from dataclasses import dataclass

# Digits of an identity that tell two of them apart; people write eight.
DIGITS = 8


@dataclass(frozen=True, slots=True)
class Expectation:
    """The set that a release loads. `identity` is the name of its directory, or the beginning of that name.

    `tuning_seconds` is what a boot without the set takes longer, where it was measured.
    """

    identity: str | None = None
    configs: int | None = None
    basis: str | None = None
    tuning_seconds: float | None = None
    degrades: bool = False
    """A lane without it is degraded, as the recipe says."""


def short(identity: str) -> str:
    """The eight digits that people write."""
    return identity[:DIGITS]


def same_identity(one: str, other: str) -> bool:
    """Records keep the beginning of the name: `9ac7b387`, `08c89d94…4796`."""
    first, second = one.partition("…")[0], other.partition("…")[0]
    length = min(len(first), len(second))
    return length >= DIGITS and first[:length] == second[:length]


def price(seconds: float | None) -> str:
    """How long tuning takes, as a person says it; the range that was seen where nothing closer is known."""
    if seconds is None:
        return "16 to 81 minutes on a Station"
    return f"about {seconds / 60:.0f} minutes"
