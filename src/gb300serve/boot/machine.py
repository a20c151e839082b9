"""The boot machine: takes lines and ticks, returns events, and gives a diagnosis at any time."""

import re
from collections.abc import Iterator
from dataclasses import replace

from gb300serve.boot import state
from gb300serve.boot.diagnosis import BootHistory, Diagnosis, diagnose
from gb300serve.boot.events import BootBegan, CauseFound, Event
from gb300serve.boot.findings import Explanation, LogFinding, explain, explain_cut, proven_phase, with_field
from gb300serve.boot.lines import QUIET, Record, parse
from gb300serve.boot.phases import Phase
from gb300serve.boot.progress import BarClock, read_bar
from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.index import BootSignals, first_word
from gb300serve.boot.signals.model import LineMark, Rank, Signal
from gb300serve.boot.state import BootState, apply, enter
from gb300serve.boot.tracebacks import LineRole, Traceback, TracebackReader, is_folded, unfold
from gb300serve.core.values import EngineName

# A boot takes longer than that to load weights after the last one ended.
SECONDS_BETWEEN_RANKS = 5.0
# Docker or a shell prints these before the engine starts; later, such a line is about something else.
_BEFORE_THE_ENGINE = frozenset(
    {
        Reason.ENTRYPOINT_MISSING,
        Reason.IMAGE_MISSING,
        Reason.IMAGE_PULL_REFUSED,
        Reason.IMAGE_WRONG_ARCHITECTURE,
        Reason.CONTAINER_NAME_TAKEN,
        Reason.MOUNT_SOURCE_MISSING,
    }
)
_NOTHING: tuple[Event, ...] = ()
# vLLM's and SGLang's regular reports, and an answered request.
_GENERATES = re.compile(
    r"Avg generation throughput: |Decode batch[,.].* gen throughput|\"POST /v1/\S+ HTTP/1\.[01]\" 200"
)
# Some engines answer it before they are ready.
_HEALTHY = re.compile(r"\"GET /health HTTP/1\.[01]\" 200")


def _first_and_last(pieces: list[str]) -> Iterator[str]:
    records = [piece for piece in pieces if piece]
    last = len(records) - 1
    for index, record in enumerate(records):
        if index in {0, last} or record[:16] != records[index + 1][:16]:
            yield record


class BootMachine:
    """Takes the lines of one container's log, from its first line. Its size does not grow with the log.

    `at` is seconds since the start of the container; without it the stamps of the lines count.
    """

    def __init__(self, signals: BootSignals) -> None:
        self._signals = signals
        self._table = signals.unknown
        self._boot: BootState | None = None
        self._history = BootHistory()
        self._line = 0
        self._bars = BarClock()
        self._events: list[Event] = []
        self._before = ""
        self._began = self._last = 0
        self._tracebacks = TracebackReader()

    @property
    def engine(self) -> EngineName | None:
        """The engine that prints the log; None until a line that only one engine prints."""
        return self._table.engine

    @property
    def phase(self) -> Phase:
        """The phase that the boot is in."""
        return self._boot.phase if self._boot else Phase.STARTING

    @property
    def quiet_from(self) -> float:
        """When the last line that is not a heartbeat was printed, as of the last tick or heartbeat."""
        return self._boot.quiet_from if self._boot else 0.0

    def feed_bar(self, text: str, at: float) -> tuple[Event, ...]:
        """A progress bar that is still being drawn: it counts as progress, but not as a line."""
        self._take(text, at)
        return self._taken()

    def feed(self, line: str, at: float | None = None) -> tuple[Event, ...]:
        """A line, with or without its line feed; carriage returns split it into records."""
        self._line += 1
        if "HTTP/1." in line or " throughput" in line or "SpecDecoding metrics" in line:
            return self._serve(line, at)
        if "\r" in line:
            for piece in _first_and_last(line.split("\r")):
                self._take(piece, at)
        elif is_folded(line):
            for piece in unfold(line):
                self._take(piece, at)
        else:
            self._take(line, at)
        return self._taken()

    def tick(self, at: float) -> tuple[Event, ...]:
        """No line was printed; it is `at` seconds since the start of the container."""
        boot = self._current(at)
        state.start_silence(boot)
        boot.watch.advance(at)
        self._events += state.check_silence(boot)
        return self._taken()

    def finish(self) -> tuple[Event, ...]:
        """The log ends here, perhaps because it was cut: a stack without its exception is a failure as well."""
        boot = self._boot
        if boot is None:
            return self._taken()
        for process, traceback in self._tracebacks.cut():
            if traceback.last[0] >= self._began and (traceback.of_engine or not traceback.of_request):
                self._add_cut(boot, process, traceback)
        boot.end(self._last)
        if boot.had_request and not boot.ended and not boot.served:
            self._events += state.serve(boot)
        return self._taken()

    def _add_cut(self, boot: BootState, process: str, traceback: Traceback) -> None:
        explanation = explain_cut(traceback, self._table)
        line, text = traceback.last if explanation.reason is Reason.UNKNOWN else traceback.raised
        self._events += state.prove(boot, proven_phase(explanation.reason, ""))
        boot.add(
            LogFinding(
                reason=explanation.reason,
                rank=Rank.CLOSING if boot.served and traceback.of_engine else explanation.rank,
                values=explanation.values,
                line=line,
                text=text,
                phase=boot.phase,
                at=boot.watch.now(),
                process=process,
                chain=traceback.chain,
            )
        )

    def result(self) -> Diagnosis:
        """The diagnosis of the boot so far; of the last one if the log holds several."""
        return diagnose(self._boot, self._history, self._table.engine)

    def _serve(self, line: str, at: float | None) -> tuple[Event, ...]:
        """A line about requests: an engine that answers serves, even if the log does not show its start."""
        boot = self._current(at)
        if boot.served or not (_GENERATES.search(line) or (not self._is_healthy_early() and _HEALTHY.search(line))):
            return self._taken()
        self._note_progress(boot, parse(line.rstrip("\n")), at)
        if boot.is_over():
            # A stopped engine finishes its requests, and ranks outlive each other by seconds.
            if boot.stopped or boot.watch.now() - boot.over_at <= SECONDS_BETWEEN_RANKS:
                return self._taken()
            boot = self._begin(at)
        self._events += state.serve(boot)
        return self._taken()

    def _is_healthy_early(self) -> bool:
        return self.engine is not None and self._signals.log(self.engine).healthy_early

    def _taken(self) -> tuple[Event, ...]:
        if not self._events:
            return _NOTHING
        events, self._events = tuple(self._events), []
        return events

    def _take(self, piece: str, at: float | None) -> None:
        piece = piece.rstrip("\n")
        if not piece or piece.isspace():
            return
        self._last = self._line
        record = parse(piece)
        if self._table.engine is None:
            engine = self._signals.engine_of(record)
            if engine is not None:
                self._identify(engine)
        role, traceback = self._tracebacks.read(record)
        candidates = self._table.by_word.get(first_word(record.text))
        if candidates and self._read(record, candidates, at):
            return
        if record.text.startswith("[") and self._read_untagged(record, at):
            return
        self._note_progress(self._current(at), record, at)
        if record.level in QUIET:
            return
        part_of = traceback if role is not LineRole.NONE else None
        if part_of is not None:
            self._prove(part_of, role, piece)
        explanation = self._explain(record, role, part_of)
        if explanation is not None:
            self._add_finding(with_field(explanation, self._before), piece, record, at, part_of)
        self._before = record.text

    def _prove(self, traceback: Traceback, role: LineRole, piece: str) -> None:
        # The stack shows how far the engine was.
        boot = self._current(None)
        boot.had_request = boot.had_request or traceback.of_request
        if role is LineRole.FRAME:
            traceback.locate(self._line, piece)
        if role is LineRole.FRAME and traceback.phase is not None:
            self._events += state.prove(boot, traceback.phase)

    def _explain(self, record: Record, role: LineRole, traceback: Traceback | None) -> Explanation | None:
        explanation = explain(record, self._table, role, traceback)
        if explanation is None and role is LineRole.MESSAGE and traceback is not None and traceback.wrapped:
            whole = record._replace(text=traceback.wrapped)
            explanation = explain(whole, self._table, LineRole.EXCEPTION, traceback)
            return None if explanation is None or explanation.reason is Reason.UNKNOWN else explanation
        if explanation is None or traceback is None or traceback.of_engine or not traceback.of_request:
            return explanation
        # An exception of a request's own code ends only the request.
        own = explanation.reason is Reason.UNKNOWN and explanation.rank in {Rank.BARE, Rank.EXCEPTION}
        return None if own else explanation

    def _read(self, record: Record, candidates: tuple[Signal, ...], at: float | None) -> bool:
        text = record.text
        boot: BootState | None = None
        for signal in candidates:
            if not text.startswith(signal.start):
                continue
            if signal.mark is LineMark.HEARTBEAT:
                self._heartbeat(self._current(at), record, at)
                return True
            if self._table.engine is None and signal.engine is not None and signal.is_match(text):
                self._identify(signal.engine)
            if boot is None:
                boot = self._select_boot(signal, at, record)
                self._note_progress(boot, record, at)
            self._events += apply(boot, signal, text, self._line, record.process)
            if signal.mark is LineMark.DIED:
                self._died(record, at)
        return boot is not None

    def _read_untagged(self, record: Record, at: float | None) -> bool:
        """vLLM 0.32 names the part of the model that it compiles: `[backbone] Starting torch.compile`."""
        untagged = record._replace(text=record.text.partition("] ")[2])
        candidates = self._table.by_word.get(first_word(untagged.text))
        return candidates is not None and self._read(untagged, candidates, at)

    def _identify(self, engine: EngineName) -> None:
        self._table = self._signals.table(engine)
        if self._boot is not None:
            self._boot.log = self._signals.log(engine)

    def _heartbeat(self, boot: BootState, record: Record, at: float | None) -> None:
        state.start_silence(boot)
        self._advance_clock(boot, record, at)
        self._events += state.check_silence(boot)

    def _select_boot(self, signal: Signal, at: float | None, record: Record) -> BootState:
        """The boot that a signal belongs to: the first line of an engine begins another boot if one was running."""
        boot = self._current(at)
        mark = signal.mark
        if mark is LineMark.ARGUMENTS:
            again = bool(boot.arguments) or boot.is_over()
        elif mark is LineMark.PREAMBLE:
            again = bool(boot.arguments) or boot.is_over(or_failed=boot.opened)
        elif mark is LineMark.HOOK_ARMED:
            again = boot.is_over(or_failed=boot.opened)
        else:
            again = self._begins_without_banner(boot, signal, at, record)
        if again:
            boot = self._begin(at)
        boot.opened = boot.opened or mark is LineMark.PREAMBLE or mark is LineMark.ARGUMENTS
        return boot

    def _begins_without_banner(self, boot: BootState, signal: Signal, at: float | None, record: Record) -> bool:
        """Some logs are filtered: a boot that is over does not load weights or size its KV cache again.

        Ranks fail within seconds of each other, and kernels may be compiled while the engine serves.
        """
        starts_loading = signal.phase is Phase.LOADING_WEIGHTS and signal.mark is not LineMark.BAR
        if not boot.is_over() or not (starts_loading or signal.mark is LineMark.SIZED):
            return False
        self._advance_clock(boot, record, at)
        return boot.watch.now() - boot.over_at > SECONDS_BETWEEN_RANKS

    def _died(self, record: Record, at: float | None) -> None:
        explanation = explain(record, self._table)
        if explanation is not None:
            self._add_finding(explanation, record.text, record, at)

    def _note_progress(self, boot: BootState, record: Record, at: float | None) -> None:
        """Every line except a heartbeat counts as progress."""
        boot.active, boot.stalled = True, False
        boot.headed = boot.headed or record.form is not None
        self._advance_clock(boot, record, at)

    def _advance_clock(self, boot: BootState, record: Record, at: float | None) -> None:
        if at is not None:
            boot.watch.advance(at)
        elif record.stamp:
            boot.watch.take_stamp(record.stamp)
        elif "%" in record.text:
            bar = read_bar(record.text)
            if bar is not None:
                boot.watch.advance(self._bars.time_of(bar, boot.watch.now()))

    def _add_finding(
        self, explanation: Explanation, piece: str, record: Record, at: float | None, traceback: Traceback | None = None
    ) -> None:
        boot = self._current(at)
        if explanation.reason in _BEFORE_THE_ENGINE and boot.arguments:
            return
        if explanation.fatal:
            self._events += state.prove(boot, proven_phase(explanation.reason, record.text))
        chain = traceback.chain if traceback else 0
        of_rank = "[rank" in piece or (traceback is not None and traceback.of_child)
        if not of_rank and self._repeats_boot(boot, explanation, record, chain):
            boot = self._begin(at)
        finding = LogFinding(
            reason=explanation.reason,
            rank=explanation.rank,
            values=explanation.values,
            line=self._line,
            text=piece,
            phase=boot.phase,
            at=boot.watch.now(),
            fatal=explanation.fatal,
            lasting=explanation.lasting,
            process=record.process,
            chain=chain,
            dealt_with=traceback.dealt_with if traceback else 0,
        )
        if boot.add(finding) and finding.rank > Rank.BARE:
            self._events.append(CauseFound(finding.reason, finding.values, finding.line, finding.text, finding.at))
        if boot.served and traceback is not None and traceback.of_engine and finding.fatal:
            boot.add(replace(finding, reason=Reason.UNKNOWN, rank=Rank.CLOSING))  # its loop ended

    def _repeats_boot(self, boot: BootState, explanation: Explanation, record: Record, chain: int) -> bool:
        """A boot that dies before it prints a line of its own prints the same error when it is run again."""
        if explanation.lasting:
            return boot.served or boot.ended
        if (
            boot.headed
            or boot.progressed[0]
            or not boot.failed
            or record.level
            or record.process
            or not explanation.fatal
        ):
            return False
        return any(
            finding.text.endswith(record.text)
            and finding.rank >= Rank.EXCEPTION
            and (chain == 0 or finding.chain != chain)
            for finding in boot.findings
        )

    def _current(self, at: float | None) -> BootState:
        return self._boot or self._begin(at)

    def _begin(self, at: float | None) -> BootState:
        if self._boot is not None:
            self._history.close(self._boot)
        number = self._boot.number + 1 if self._boot else 1
        boot = BootState(number, self._signals.log(self._table.engine))
        boot.watch.advance(at if at is not None and number > 1 else 0.0)
        self._boot, self._began = boot, self._line
        self._events.append(BootBegan(number))
        self._events += enter(boot, Phase.STARTING)
        return boot
