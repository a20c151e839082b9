"""`speculative_config`: the method, the draft length, and its schedule by batch size."""

from collections.abc import Mapping
from dataclasses import dataclass

from gb300serve.core.values import Value
from gb300serve.engines.narrow import is_whole
from gb300serve.engines.vllm.schedule import SCHEDULE, tiers


@dataclass(frozen=True, slots=True)
class Tier:
    """From `start` to `end` running sequences, both included, `tokens` are drafted a step; 0 drafts nothing."""

    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class SpeculationOptions:
    """What the drafter is told. DSpark without a `model` drafts with the target checkpoint's own head."""

    method: str | None
    model: str | None
    num_speculative_tokens: int | None
    schedule: tuple[Tier, ...]
    """Sorted by batch size, as the engine sorts it; empty without one."""

    def tokens_at(self, batch: int) -> int:
        """Tokens drafted a step at this many running sequences.

        As the scheduler does it: a gap and everything past the last tier carry the tier before on, and nothing drafts
        more than `num_speculative_tokens`.
        """
        most = self.num_speculative_tokens or 0
        if not self.schedule:
            return most
        tokens = next((tier.tokens for tier in reversed(self.schedule) if tier.start <= batch), most)
        return min(tokens, most) if self.num_speculative_tokens is not None else tokens


def speculation(value: Value) -> SpeculationOptions | None:
    """The typed form of `speculative_config`; parts of the wrong type count as not given."""
    if not isinstance(value, Mapping):
        return None
    method, model, tokens = value.get("method"), value.get("model"), value.get("num_speculative_tokens")
    return SpeculationOptions(
        method=method if isinstance(method, str) else None,
        model=model if isinstance(model, str) else None,
        num_speculative_tokens=tokens if is_whole(tokens) else None,
        schedule=tuple(Tier(*tier) for tier in sorted(tiers(value.get(SCHEDULE)))),
    )
