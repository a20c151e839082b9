"""Silence: when a boot that says nothing new is tuning, and when it is stalled."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from gb300serve.boot.events import (
    Event,
    PhaseEntered,
    Progress,
    Receipt,
    ReceiptValue,
    Stalled,
    StartupComplete,
    Stopped,
    TuningHit,
    TuningMiss,
)
from gb300serve.boot.findings import LogFinding
from gb300serve.boot.lines import Stopwatch
from gb300serve.boot.phases import PATIENCE, Phase
from gb300serve.boot.progress import read_bar
from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import EngineName, LineMark, Rank, Signal, Value, values_of

MAX_FINDINGS = 64
# A request that fails logs a traceback while the engine goes on. Only what stands this close before the line that
# says that the engine is dead explains its death; a traceback of the engine has about 60 lines.
LINES_BEFORE_DEATH = 400
_DECISIVE = frozenset({Rank.SPECIFIC, Rank.CLOSING})
_SELF_EVIDENT = frozenset({Reason.PORT_IN_USE, Reason.HOST_OOM_KILLED, Reason.KILLED})


@dataclass(slots=True)
class TuningState:
    """What is known of the kernel tuning. Times are seconds since the start of the boot."""

    loaded: int = 0
    started: float | None = None
    ended: bool = False
    missed: bool = False

    @property
    def running(self) -> bool:
        return self.started is not None and not self.ended


@dataclass(slots=True)
class Course:
    """Everything kept of a boot; its size does not grow with the log."""

    number: int
    began: float = 0.0
    engine: EngineName | None = None
    """Whose log it is, as far as it has been told."""
    watch: Stopwatch = field(default_factory=Stopwatch)
    visits: list[tuple[Phase, float]] = field(default_factory=list)
    arguments: str = ""
    arguments_at: tuple[int, str] | None = None
    receipts: dict[str, dict[str, ReceiptValue]] = field(default_factory=dict)
    receipts_at: dict[str, tuple[int, str]] = field(default_factory=dict)
    findings: list[LogFinding] = field(default_factory=list)
    recent: deque[LogFinding] = field(default_factory=lambda: deque(maxlen=16))
    tuning: TuningState = field(default_factory=TuningState)
    progressed: tuple[int, str] = (0, "")
    quiet_from: float = 0.0
    active: bool = True
    sized: bool = False
    opened: bool = False
    """The engine has said its first words."""
    served: bool = False
    stopped: bool = False
    stalled: bool = False
    hook_armed: tuple[int, str] | None = None
    hook_works: bool = False

    @property
    def phase(self) -> Phase:
        return self.visits[-1][0] if self.visits else Phase.STARTING

    @property
    def failed(self) -> bool:
        return not self.stopped and any(self.is_fatal(finding) for finding in self.findings)

    @property
    def ended(self) -> bool:
        return self.stopped or self.failed

    def is_over(self, *, or_seems: bool = False) -> bool:
        """Whether what comes now belongs to another boot; a bare exception before the first words is survived."""
        sure = any(finding.fatal and finding.rank in _DECISIVE for finding in self.findings)
        return self.served or self.stopped or sure or (or_seems and self.failed)

    def is_fatal(self, finding: LogFinding) -> bool:
        """Whether the boot has failed by it: texts that are not sure signs of death do not survive progress."""
        if not finding.fatal or finding.rank in _DECISIVE:
            return finding.fatal
        return finding.line > self.progressed[0]

    def add(self, finding: LogFinding) -> bool:
        """Keep a finding; False when it does not count (yet): a request's error does not end an engine that serves."""
        if self.stopped:
            return False
        if self.served and not self.failed and finding.reason not in _SELF_EVIDENT and finding.rank is not Rank.CLOSING:
            self.recent.append(finding)
            return False
        if self.served:
            self.findings += [item for item in self.recent if item.line > finding.line - LINES_BEFORE_DEATH]
            self.recent.clear()
        if len(self.findings) < MAX_FINDINGS or finding.rank >= Rank.CONSEQUENCE:
            self.findings.append(finding)
            self._thin_out()
        return True

    def complete(self) -> None:
        """The server started: what seemed to be a cause was none, unless it lasts.

        A port that was taken stays taken: SGLang's first request to itself is answered by the server that holds it.
        """
        self.served = True
        self.findings = [each for each in self.findings if each.lasting or each.reason is Reason.PORT_IN_USE]

    def argument(self, name: str) -> str | None:
        """The value of one argument in the engine's echo, as it is written there."""
        match = re.search(rf"(?:'{name}': |\b{name}=)('[^']*'|\[[^\]]*\]|[^,}})]*)", self.arguments)
        return match[1].strip("'") if match else None

    def _thin_out(self) -> None:
        if len(self.findings) > 2 * MAX_FINDINGS:
            strong = sorted(self.findings, key=lambda finding: (-finding.rank, finding.line))[:MAX_FINDINGS]
            self.findings = sorted(strong, key=lambda finding: finding.line)


# A loaded cache leaves a few seconds of tuning (6.5 s on the Station); longer means that some kernels are measured.
HIT_SECONDS = 60.0
_ONLY_BEFORE_SIZING = frozenset({Phase.COMPILING, Phase.PROFILING})


def apply(course: Course, signal: Signal, text: str, line: int) -> Iterator[Event]:
    """Change `course` by a signal that `text` (on line `line`) begins with."""
    match = signal.pattern.match(text) if signal.pattern else None
    if signal.pattern is not None and match is None:
        return
    if not course.served:
        course.progressed = (line, text)
        phase = _phase(course, signal)
        if phase is not None:
            yield from enter(course, phase)
    if signal.receipt is not None and match is not None and not course.served:
        yield from _receipt(course, signal.receipt, values_of(match), (line, text))
    if signal.mark is not None:
        yield from _mark(course, signal.mark, text, line)


def enter(course: Course, phase: Phase) -> Iterator[Event]:
    """The boot has come to `phase`, unless it is there."""
    if course.phase is not phase or not course.visits:
        at = course.watch.now()
        course.visits.append((phase, at))
        yield PhaseEntered(phase, at)


def missed(course: Course) -> Iterator[Event]:
    """Kernels are being tuned: told once in a boot."""
    if not course.tuning.missed:
        course.tuning.missed = True
        yield TuningMiss(course.tuning.loaded, course.watch.now())


def _phase(course: Course, signal: Signal) -> Phase | None:
    """The phase that a signal leads to, as the boot stands."""
    if signal.mark is LineMark.GRAPH_BAR:
        return Phase.CAPTURING_GRAPHS if course.sized else Phase.PROFILING
    if signal.mark is LineMark.GRAPHS_CAPTURED:
        return Phase.SERVING if course.sized else Phase.PROFILING
    if signal.mark is LineMark.TUNING_ENDS and course.argument("enforce_eager") != "True":
        return Phase.CAPTURING_GRAPHS
    if course.sized and signal.phase in _ONLY_BEFORE_SIZING:
        return None
    return signal.phase


def _receipt(course: Course, name: str, values: dict[str, Value], place: tuple[int, str]) -> Iterator[Event]:
    course.receipts[name], course.receipts_at[name] = values, place
    yield Receipt(name, values, place[1], course.watch.now())
    if name == "tuning_saved" and values.get("new"):
        yield from missed(course)


def _mark(course: Course, mark: LineMark, text: str, line: int) -> Iterator[Event]:
    match mark:
        case LineMark.ARGUMENTS:
            course.arguments, course.arguments_at = text, (line, text)
        case LineMark.SIZED:
            course.sized = True
        case LineMark.HOOK_ARMED:
            course.hook_armed = course.hook_armed or (line, text)
        case LineMark.HOOK_WORKS:
            course.hook_works = True
        case LineMark.COMPLETE if not course.served:
            course.complete()
            yield StartupComplete(course.watch.now())
        case LineMark.STOP if not course.ended:
            course.stopped = True
            yield Stopped(course.watch.now())
        case LineMark.BAR | LineMark.TUNING_BAR | LineMark.GRAPH_BAR:
            yield from _bar(course, mark, text)
        case _:
            yield from _tuning(course, mark)


def _bar(course: Course, mark: LineMark, text: str) -> Iterator[Event]:
    if mark is LineMark.TUNING_BAR:
        yield from missed(course)
    bar = read_bar(text)
    if bar is not None and not course.served:
        yield Progress(course.phase, bar.title, bar.done, bar.total, course.watch.now())


def _tuning(course: Course, mark: LineMark) -> Iterator[Event]:
    tuning = course.tuning
    match mark:
        case LineMark.TUNING_LOADED:
            loaded = course.receipts.get("tuning_loaded", {}).get("configs", 0)
            tuning.loaded = loaded if isinstance(loaded, int) else 0
            if tuning.loaded:
                yield TuningHit(tuning.loaded, course.watch.now())
        case LineMark.TUNING_STARTS:
            tuning.started, tuning.ended = course.watch.now(), False
        case LineMark.TUNING_ENDS:
            tuning.ended = True
        case _:
            pass


def begins(course: Course) -> None:
    """A heartbeat or a tick comes: whatever was said before it was the last sign of progress."""
    if course.active:
        course.active = False
        course.quiet_from = course.watch.now()


def lasts(course: Course) -> Iterator[Event]:
    """What the silence up to now means."""
    if course.served or course.ended:
        return
    now = course.watch.now()
    silent = now - course.quiet_from
    tuning = course.tuning
    if tuning.running and tuning.started is not None:
        waited = now - tuning.started
        if waited > (HIT_SECONDS if tuning.loaded else 0.0):
            yield from missed(course)
    if not course.stalled and silent > PATIENCE[course.phase]:
        course.stalled = True
        yield Stalled(course.phase, silent, now)


def is_stalled(course: Course) -> bool:
    """Tuning is never called stalled: it has been silent for longer than any patience and was well."""
    return course.stalled and course.phase is not Phase.TUNING_KERNELS
