"""The tables of all signals and causes, indexed by engine and by the first word or a literal text of each."""

from collections.abc import Iterable

from gb300serve.boot.signals import (
    arguments,
    engine,
    failures,
    hooks,
    machine,
    memory,
    model_files,
    sglang,
    sglang_failures,
    shared,
)
from gb300serve.boot.signals.model import Cause, EngineName, Signal

SIGNALS: tuple[Signal, ...] = (*engine.SIGNALS, *sglang.SIGNALS, *shared.SIGNALS, *hooks.SIGNALS)

CAUSES: tuple[Cause, ...] = (
    *hooks.CAUSES,
    *sglang_failures.CAUSES,
    *memory.CAUSES,
    *arguments.CAUSES,
    *model_files.CAUSES,
    *machine.CAUSES,
    *failures.CAUSES,
    *failures.CLOSING,
)

# Whose log it is may not be known yet (None): then every row counts.
_WHOSE: tuple[EngineName | None, ...] = (None, "vllm", "sglang")


def first_word(text: str) -> str:
    """Up to the first blank; of `name=value` the name and its sign."""
    word = text.split(" ", 1)[0]
    return word if "=" not in word else word[: word.index("=") + 1]


def by_first_word(signals: Iterable[Signal]) -> dict[str, tuple[Signal, ...]]:
    """Signals under the first word of their start: one look-up instead of a hundred comparisons a line."""
    index: dict[str, tuple[Signal, ...]] = {}
    for signal in signals:
        word = first_word(signal.start)
        index[word] = (*index.get(word, ()), signal)
    return index


SIGNALS_BY_WORD = {
    whose: by_first_word(signal for signal in SIGNALS if whose is None or signal.engine in {None, whose})
    for whose in _WHOSE
}
CAUSES_OF = {
    whose: tuple(cause for cause in CAUSES if whose is None or cause.engine in {None, whose}) for whose in _WHOSE
}
