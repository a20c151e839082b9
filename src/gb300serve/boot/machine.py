"""The boot machine: fed with lines and ticks, it tells what happens, and at any time what became of the boot."""

from collections.abc import Iterator

from gb300serve.boot import state
from gb300serve.boot.diagnosis import BootHistory, Diagnosis, diagnose
from gb300serve.boot.events import BootBegan, CauseFound, Event
from gb300serve.boot.findings import Explanation, LogFinding, explain, with_field
from gb300serve.boot.lines import QUIET, Record, parse, told_by
from gb300serve.boot.phases import Phase
from gb300serve.boot.progress import BarClock, read_bar
from gb300serve.boot.signals import SIGNALS_BY_WORD, first_word
from gb300serve.boot.signals.model import EngineName, LineMark, Rank, Signal
from gb300serve.boot.state import Course, apply, enter

_NOTHING: tuple[Event, ...] = ()
# Python prints an exception that another one followed: what comes next may say the same, and is no other boot.
_CHAINED = frozenset(
    {
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    }
)


def _worth_reading(pieces: list[str]) -> Iterator[str]:
    """Of a bar that was redrawn many times in one line, how it began and how it stands."""
    records = [piece for piece in pieces if piece]
    last = len(records) - 1
    for index, record in enumerate(records):
        if index in {0, last} or record[:16] != records[index + 1][:16]:
            yield record


class BootMachine:
    """Takes the lines of one container's log, from its first line on. Keeps as much of a long log as of a short one.

    `at` is seconds since the start of the container, in the engine's time; without it the lines' own stamps count.
    """

    def __init__(self) -> None:
        self._course: Course | None = None
        self._history = BootHistory()
        self._line = 0
        self._bars = BarClock()
        self._events: list[Event] = []
        self._before = ""
        self._engine: EngineName | None = None
        self._chained = False

    @property
    def engine(self) -> EngineName | None:
        """Whose log it is, from the first line that only one engine prints."""
        return self._engine

    @property
    def phase(self) -> Phase:
        """The phase that the boot has come to."""
        return self._course.phase if self._course else Phase.STARTING

    @property
    def quiet_from(self) -> float:
        """When the log last said something that is no heartbeat, as of the last tick or heartbeat."""
        return self._course.quiet_from if self._course else 0.0

    def glimpse(self, text: str, at: float) -> tuple[Event, ...]:
        """A bar as it is drawn, before the log has its line: it moves the boot on, and counts as no line."""
        self._take(text, at)
        events, self._events = tuple(self._events), []
        return events

    def feed(self, line: str, at: float | None = None) -> tuple[Event, ...]:
        """A line as it came, with or without its line feed; carriage returns split it into records."""
        self._line += 1
        if "HTTP/1." in line or " throughput" in line or "SpecDecoding metrics" in line:
            return _NOTHING
        if "\r" in line:
            for piece in _worth_reading(line.split("\r")):
                self._take(piece, at)
        else:
            self._take(line, at)
        if not self._events:
            return _NOTHING
        events, self._events = tuple(self._events), []
        return events

    def tick(self, at: float) -> tuple[Event, ...]:
        """Nothing was written; the clock reads `at` seconds since the start of the container."""
        course = self._current(at)
        state.begins(course)
        course.watch.told(at)
        self._events += state.lasts(course)
        events, self._events = tuple(self._events), []
        return events

    def result(self) -> Diagnosis:
        """What became of the boot so far; of the last one when the log holds several."""
        if self._course is not None:
            self._course.engine = self._engine
        return diagnose(self._course, self._history)

    def _take(self, piece: str, at: float | None) -> None:
        piece = piece.rstrip("\n")
        if not piece or piece.isspace():
            return
        record = parse(piece)
        if self._engine is None:
            self._engine = told_by(record)
        candidates = SIGNALS_BY_WORD[self._engine].get(first_word(record.text))
        if candidates and self._read(record, candidates, at):
            return
        self._pass_time(self._current(at), record, at)
        if record.level not in QUIET:
            explanation = explain(record, self._engine)
            if explanation is not None:
                self._blame(with_field(explanation, self._before), piece, record, at)
            self._before = record.text
            self._chained = self._chained or record.text in _CHAINED

    def _read(self, record: Record, candidates: tuple[Signal, ...], at: float | None) -> bool:
        """Apply the signals that the record gives; False when it gives none."""
        text = record.text
        course: Course | None = None
        for signal in candidates:
            if not text.startswith(signal.start):
                continue
            if signal.mark is LineMark.HEARTBEAT:
                self._heartbeat(self._current(at), record, at)
                return True
            if signal.tells and self._engine is None and (signal.pattern is None or signal.pattern.match(text)):
                self._engine = signal.engine
            if course is None:
                course = self._boot_of(signal, at)
                self._pass_time(course, record, at)
            self._events += apply(course, signal, text, self._line)
            if signal.mark is LineMark.DIED:
                self._died(record, at)
        return course is not None

    def _heartbeat(self, course: Course, record: Record, at: float | None) -> None:
        state.begins(course)
        self._tell_time(course, record, at)
        self._events += state.lasts(course)

    def _boot_of(self, signal: Signal, at: float | None) -> Course:
        """The boot that a signal belongs to: the first words of an engine open another one when one was under way."""
        course = self._current(at)
        mark = signal.mark
        if mark is LineMark.ARGUMENTS:
            again = bool(course.arguments) or course.is_over()
        elif mark is LineMark.PREAMBLE:
            again = bool(course.arguments) or course.is_over(or_seems=course.opened)
        else:
            again = mark is LineMark.HOOK_ARMED and course.is_over(or_seems=course.opened)
        if again:
            course = self._begin(at)
        course.opened = course.opened or mark is LineMark.PREAMBLE or mark is LineMark.ARGUMENTS
        return course

    def _died(self, record: Record, at: float | None) -> None:
        explanation = explain(record, self._engine)
        if explanation is not None:
            self._blame(explanation, record.text, record, at)

    def _pass_time(self, course: Course, record: Record, at: float | None) -> None:
        """Any line but a heartbeat is a sign of progress."""
        course.active, course.stalled = True, False
        self._tell_time(course, record, at)

    def _tell_time(self, course: Course, record: Record, at: float | None) -> None:
        if at is not None:
            course.watch.told(at)
        elif record.stamp:
            course.watch.saw(record.stamp)
        elif "%" in record.text:
            bar = read_bar(record.text)
            if bar is not None:
                course.watch.told(self._bars.time_of(bar, course.watch.now()))

    def _blame(self, explanation: Explanation, piece: str, record: Record, at: float | None) -> None:
        course = self._current(at)
        if not self._chained and self._repeats_boot(course, explanation, record):
            course = self._begin(at)
        self._chained = False
        finding = LogFinding(
            reason=explanation.reason,
            rank=explanation.rank,
            values=explanation.values,
            line=self._line,
            text=piece,
            phase=course.phase,
            at=course.watch.now(),
            fatal=explanation.fatal,
            lasting=explanation.lasting,
        )
        if course.add(finding) and finding.rank > Rank.BARE:
            self._events.append(CauseFound(finding.reason, finding.values, finding.line, finding.text, finding.at))

    def _repeats_boot(self, course: Course, explanation: Explanation, record: Record) -> bool:
        """A boot that dies before it tells its arguments says the same word again when it is run again."""
        if explanation.lasting:
            return course.served or course.ended
        if course.arguments or not course.failed or record.level or not explanation.fatal:
            return False
        return any(finding.text.endswith(record.text) and finding.rank >= Rank.EXCEPTION for finding in course.findings)

    def _current(self, at: float | None) -> Course:
        return self._course or self._begin(at)

    def _begin(self, at: float | None) -> Course:
        if self._course is not None:
            self._course.engine = self._engine
            self._history.close(self._course)
        number = self._course.number + 1 if self._course else 1
        began = at if at is not None and number > 1 else 0.0
        course = Course(number, began)
        course.watch.told(began)
        self._course = course
        self._events.append(BootBegan(number))
        self._events += enter(course, Phase.STARTING)
        return course
