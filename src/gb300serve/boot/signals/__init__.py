"""The tables of all signals and causes, indexed by the first word or by a literal text of each."""

from collections.abc import Iterable

from gb300serve.boot.signals import arguments, engine, failing, hooks, machine, memory, model_files, sglang
from gb300serve.boot.signals.model import Cause, Signal

SIGNALS: tuple[Signal, ...] = (*engine.SIGNALS, *sglang.SIGNALS, *hooks.SIGNALS)

CAUSES: tuple[Cause, ...] = (
    *hooks.CAUSES,
    *memory.CAUSES,
    *arguments.CAUSES,
    *model_files.CAUSES,
    *machine.CAUSES,
    *failing.CAUSES,
    *failing.CLOSING,
)


def by_first_word(signals: Iterable[Signal]) -> dict[str, tuple[Signal, ...]]:
    """Signals under the first word of their start: one look-up instead of a hundred comparisons a line."""
    index: dict[str, tuple[Signal, ...]] = {}
    for signal in signals:
        word = signal.start.split(" ", 1)[0]
        index[word] = (*index.get(word, ()), signal)
    return index


SIGNALS_BY_WORD = by_first_word(SIGNALS)
