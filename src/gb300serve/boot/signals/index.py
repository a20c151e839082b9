"""The signals and causes of all engines, indexed for the boot machine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from gb300serve.boot.lines import HeaderForm, Record
from gb300serve.boot.signals import arguments, machine, model_files, shared
from gb300serve.boot.signals.model import Cause, EngineLog, Signal
from gb300serve.core.values import EngineName

_SHARED_CAUSES = (
    *machine.MEMORY_CAUSES,
    *arguments.CAUSES,
    *model_files.CAUSES,
    *machine.CAUSES,
    *shared.LIBRARY_CAUSES,
    *shared.FAILURE_CAUSES,
    *shared.CLOSING,
)


def first_word(text: str) -> str:
    """The text before the first space; of `name=value` the name with its `=`."""
    word = text.split(" ", 1)[0]
    return word if "=" not in word else word[: word.index("=") + 1]


@dataclass(frozen=True, slots=True, eq=False)
class SignalTable:
    """The rows that count for the log of one engine, or of an engine that is not known yet; compared by identity."""

    engine: EngineName | None
    by_word: Mapping[str, tuple[Signal, ...]]
    """Signals by the first word of their start: one lookup a line instead of a hundred comparisons."""
    causes: tuple[Cause, ...]
    own_causes: tuple[Cause, ...] = ()
    """The causes of this engine alone."""
    unlevelled_header: HeaderForm | None = None

    # Engines repeat their errors: many ranks print the same text, or a server prints it for every request.
    @lru_cache(maxsize=256)  # noqa: B019 - the tables live as long as the process
    def causes_in(self, text: str, *, own: bool) -> tuple[Cause, ...]:
        """The causes, or those of this engine alone, whose needle is in the text."""
        # A loop over a hundred substring searches takes a twentieth of the time of one expression with them all.
        return tuple(cause for cause in (self.own_causes if own else self.causes) if cause.needle in text)


class BootSignals:
    """Everything that the boot machine knows of the engines. An unknown engine is taken for the first one."""

    def __init__(self, logs: Iterable[EngineLog]) -> None:
        self._logs = {log.engine: log for log in logs}
        every = tuple(self._logs.values())
        self.default = every[0]
        self.unknown = _table(None, every)
        self._tables = {log.engine: _table(log, (log,)) for log in every}

    def table(self, engine: EngineName) -> SignalTable:
        """The rows for the log of this engine."""
        return self._tables[engine]

    def log(self, engine: EngineName | None) -> EngineLog:
        """How to read the log of this engine."""
        return self._logs[engine] if engine else self.default

    def engine_of(self, record: Record) -> EngineName | None:
        """The only engine that can have printed this record, by its header, a usage error or a traceback's path."""
        text = record.text
        for log in self._logs.values():
            if (record.form and record.form == log.own_header) or text.startswith(log.usage_errors):
                return log.engine
        if not text.startswith(("  File ", "/")):
            return None
        # The first engine is asked last: it is also a library of the others, below their directories.
        return next((log.engine for log in reversed(self._logs.values()) if log.package in text), None)


def _table(log: EngineLog | None, logs: tuple[EngineLog, ...]) -> SignalTable:
    own_signals = tuple(signal for each in logs for signal in _signals_of(each))
    by_word: dict[str, tuple[Signal, ...]] = {}
    for signal in (*own_signals, *shared.SIGNALS, *shared.HOOK_SIGNALS):
        word = first_word(signal.start)
        by_word[word] = (*by_word.get(word, ()), signal)
    own_causes = tuple(cause for each in reversed(logs) for cause in each.causes)
    causes = (*shared.HOOK_CAUSES, *own_causes, *_SHARED_CAUSES)
    if log is None:
        return SignalTable(None, by_word, causes)
    return SignalTable(log.engine, by_word, causes, own_causes, log.unlevelled_header)


def _signals_of(log: EngineLog) -> tuple[Signal, ...]:
    return (*(replace(signal, engine=log.engine) for signal in log.signals), *log.common_signals)
