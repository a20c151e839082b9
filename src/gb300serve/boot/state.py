"""The state of a boot: how signals change it, and when a silent boot is tuning or stalled."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

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
from gb300serve.boot.signals.model import EngineLog, LineMark, Rank, Signal, Value, values_of

MAX_FINDINGS = 64
# A failing request logs a traceback and the engine goes on. Only findings this close before the line that reports the
# engine's death explain it; a traceback of the engine has about 60 lines.
LINES_BEFORE_DEATH = 400
_CLOSING = frozenset({Rank.CLOSING, Rank.CLOSING_WORKER})
MAX_PROCESSES = 64
# Seconds that the other processes of an engine live on at most; they poll each other every second.
LONGEST_DEATH = 60.0
# Processes that start the others: these would not go on without them.
_PARENTS = frozenset({"APIServer"})
_SELF_EVIDENT = frozenset({Reason.PORT_IN_USE, Reason.HOST_OOM_KILLED, Reason.KILLED})


@dataclass(slots=True)
class TuningState:
    """The state of kernel tuning. Times are seconds since the start of the boot."""

    loaded: int = 0
    started: float | None = None
    ended: bool = False
    missed: bool = False

    @property
    def running(self) -> bool:
        return self.started is not None and not self.ended


@dataclass(slots=True)
class BootState:
    """Everything kept of a boot; its size does not grow with the log."""

    number: int
    log: EngineLog
    """How to read its log; of the default engine until the log shows another one."""
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
    progressed_at: float = 0.0
    progress_of: dict[str, int] = field(default_factory=dict)
    """The line of the last progress, by process."""
    over_at: float = 0.0
    """Seconds when the boot ended or began to serve."""
    ready_at: float = 0.0
    """Seconds when it began to serve; 0 if it does not, or if the log does not show when."""
    quiet_from: float = 0.0
    active: bool = True
    sized: bool = False
    headed: bool = False
    """A line has the header of an engine's log."""
    opened: bool = False
    """The engine has printed its first line."""
    served: bool = False
    stopped: bool = False
    stalled: bool = False
    died: bool = False
    """A finding before it served leaves no doubt that the engine is dead."""
    had_request: bool = False
    """The log has the stack of a request."""
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

    def is_over(self, *, or_failed: bool = False) -> bool:
        """Whether the next lines belong to another boot; an exception that the engine may survive does not end one."""
        return self.served or self.stopped or self.died or (or_failed and self.failed)

    def is_fatal(self, finding: LogFinding) -> bool:
        """Whether the finding means that the boot failed: the process that printed it made no progress afterwards."""
        return finding.fatal and (_is_decisive(finding) or not self.is_survived(finding))

    def is_survived(self, finding: LogFinding) -> bool:
        """Whether the process of the finding went on. Progress of one rank does not mean that another one survived."""
        went_on = self.progressed_at - finding.at > LONGEST_DEATH
        if went_on or not finding.process or finding.process in _PARENTS:
            return finding.line < self.progressed[0]
        return finding.line < self.progress_of.get(finding.process, 0)

    def note_progress(self, process: str, line: int, text: str) -> None:
        """A line of the boot that only a living engine prints."""
        self.progressed, self.progressed_at = (line, text), self.watch.now()
        if process in self.progress_of or len(self.progress_of) < MAX_PROCESSES:
            self.progress_of[process] = line

    def add(self, finding: LogFinding) -> bool:
        """Add a finding. False if it does not count (yet): a request's error does not end an engine that serves."""
        # An engine that failed kills its own processes.
        is_own_kill = finding.reason is Reason.KILLED and finding.rank in _CLOSING and self.failed
        if self.stopped or is_own_kill:
            return False
        if self.served and not self.failed and finding.reason not in _SELF_EVIDENT and finding.rank is not Rank.CLOSING:
            self.recent.append(finding)
            return False
        if self.served:
            self.findings += [item for item in self.recent if item.line > finding.line - LINES_BEFORE_DEATH]
            self.recent.clear()
        if len(self.findings) < MAX_FINDINGS or finding.rank >= Rank.VAGUE:
            self.findings.append(finding)
            self._drop_weakest()
        if _is_decisive(finding) and not self.served:
            self.died, self.over_at = True, finding.at
        return True

    def complete(self) -> None:
        """The server started: earlier findings were not causes, unless they are lasting.

        A port in use stays in use: SGLang's first request to itself is answered by the server that holds the port.
        """
        self.served = True
        self.over_at = self.ready_at = self.watch.now()
        self.findings = [
            finding for finding in self.findings if finding.lasting or finding.reason is Reason.PORT_IN_USE
        ]

    def end(self, last: int) -> None:
        """The log ends with this line: a boot does not go on after an error that explains itself."""
        for index, finding in enumerate(self.findings):
            if finding.rank is Rank.NOTED and finding.reason is not Reason.UNKNOWN and finding.line == last:
                self.findings[index] = replace(finding, fatal=True)

    def argument(self, name: str) -> str | None:
        """The value of one argument as the engine's echo prints it."""
        match = re.search(rf"(?:'{name}': |\b{name}=)('[^']*'|\[[^\]]*\]|[^,}})]*)", self.arguments)
        return match[1].strip("'") if match else None

    def _drop_weakest(self) -> None:
        if len(self.findings) > 2 * MAX_FINDINGS:
            strong = sorted(self.findings, key=lambda finding: (-finding.rank, finding.line))[:MAX_FINDINGS]
            self.findings = sorted(strong, key=lambda finding: finding.line)


def _is_decisive(finding: LogFinding) -> bool:
    """Whether the line leaves no doubt that the engine is dead."""
    return finding.fatal and (finding.rank in _CLOSING or finding.reason in {Reason.KILLED, Reason.PORT_IN_USE})


# With a loaded cache, tuning takes a few seconds (6.5 s on the Station); longer means that kernels are being measured.
HIT_SECONDS = 60.0
_ONLY_BEFORE_SIZING = frozenset({Phase.COMPILING, Phase.PROFILING})


_NO_PROGRESS = frozenset({LineMark.STOP, LineMark.DIED, LineMark.HEARTBEAT})


def apply(boot: BootState, signal: Signal, text: str, line: int, process: str = "") -> Iterator[Event]:
    """Change the boot by a signal that `text` (on line `line`) begins with."""
    match = signal.pattern.match(text) if signal.pattern else None
    if signal.pattern is not None and match is None:
        return
    if not boot.served and signal.mark not in _NO_PROGRESS:
        boot.note_progress(process, line, text)
        if signal.mark is LineMark.GRAPHS_CAPTURED and match is not None:
            _date_capture(boot, values_of(match))
        phase = _phase(boot, signal)
        if phase is not None:
            yield from enter(boot, phase)
    if signal.receipt is not None and match is not None and not boot.served:
        yield from _receipt(boot, signal.receipt, values_of(match), (line, text))
    if signal.mark is not None:
        yield from _mark(boot, signal.mark, text, line)


def serve(boot: BootState) -> Iterator[Event]:
    """The engine answers requests, so it started; the log does not show when."""
    yield from enter(boot, Phase.SERVING)
    boot.complete()
    boot.ready_at = 0.0
    yield StartupComplete(boot.watch.now())


def enter(boot: BootState, phase: Phase) -> Iterator[Event]:
    """Enter `phase`, unless the boot is already in it."""
    if boot.phase is not phase or not boot.visits:
        at = boot.watch.now()
        boot.visits.append((phase, at))
        yield PhaseEntered(phase, at)


def _date_capture(boot: BootState, values: dict[str, Value]) -> None:
    """Bars have no stamp: the capture began that many seconds ago, not at the line before its bars.

    In between vLLM warms up its kernels without a line, for 18 to 20 s on an H200.
    """
    if [phase for phase, _ in boot.visits[-2:]] == [Phase.SIZING_KV_CACHE, Phase.CAPTURING_GRAPHS]:
        seconds = values.get("seconds")
        begun = boot.watch.now() - (seconds if isinstance(seconds, int | float) else 0.0)
        boot.visits[-1] = (Phase.CAPTURING_GRAPHS, max(begun, boot.visits[-1][1]))


_ORDER = {phase: number for number, phase in enumerate(Phase)}


def prove(boot: BootState, phase: Phase) -> Iterator[Event]:
    """The boot is at least in `phase`."""
    if not boot.served and _ORDER[phase] > _ORDER[boot.phase]:
        yield from enter(boot, phase)


def report_tuning_miss(boot: BootState) -> Iterator[Event]:
    """Kernels are being tuned: reported once in a boot."""
    if not boot.tuning.missed:
        boot.tuning.missed = True
        yield TuningMiss(boot.tuning.loaded, boot.watch.now())


def _phase(boot: BootState, signal: Signal) -> Phase | None:
    if signal.mark is LineMark.GRAPH_BAR:
        return Phase.PROFILING if _measures_graphs(boot) else Phase.CAPTURING_GRAPHS
    if signal.mark is LineMark.GRAPHS_CAPTURED:
        return Phase.SERVING if boot.sized else Phase.PROFILING if _measures_graphs(boot) else Phase.CAPTURING_GRAPHS
    if signal.mark is LineMark.TUNING_ENDS and boot.argument("enforce_eager") != "True":
        return Phase.CAPTURING_GRAPHS
    return None if boot.sized and signal.phase in _ONLY_BEFORE_SIZING else signal.phase


def _measures_graphs(boot: BootState) -> bool:
    """Before the KV cache has its size, vLLM captures graphs to measure them; a log may also begin later."""
    return not boot.sized and boot.phase not in {Phase.STARTING, Phase.CAPTURING_GRAPHS}


# A draft model loads, and gets its cache, after the model that it drafts for.
_FIRST_COUNTS: dict[str, tuple[str, ...]] = {"model_loading": ("gib",), "kv_cache_tokens": ("gib", "k_gib", "v_gib")}


def _receipt(boot: BootState, name: str, values: dict[str, Value], place: tuple[int, str]) -> Iterator[Event]:
    before = boot.receipts.get(name, {})
    sizes = {key: before[key] for key in _FIRST_COUNTS.get(name, ()) if key in before}
    boot.receipts[name], boot.receipts_at[name] = values | sizes, place
    yield Receipt(name, values, place[1], boot.watch.now())
    if name == "tuning_saved" and values.get("new"):
        yield from report_tuning_miss(boot)


def _mark(boot: BootState, mark: LineMark, text: str, line: int) -> Iterator[Event]:
    match mark:
        case LineMark.ARGUMENTS:
            boot.arguments, boot.arguments_at = text, (line, text)
        case LineMark.SIZED:
            boot.sized = True
        case LineMark.HOOK_ARMED:
            boot.hook_armed = boot.hook_armed or (line, text)
        case LineMark.HOOK_WORKS:
            boot.hook_works = True
        case LineMark.COMPLETE if not boot.served:
            boot.complete()
            yield StartupComplete(boot.watch.now())
        case LineMark.STOP if not boot.ended:
            boot.stopped, boot.over_at = True, boot.watch.now()
            yield Stopped(boot.watch.now())
        case LineMark.BAR | LineMark.TUNING_BAR | LineMark.GRAPH_BAR:
            yield from _bar(boot, mark, text)
        case _:
            yield from _tuning(boot, mark)


def _bar(boot: BootState, mark: LineMark, text: str) -> Iterator[Event]:
    if mark is LineMark.TUNING_BAR:
        yield from report_tuning_miss(boot)
    bar = read_bar(text)
    if bar is not None and not boot.served:
        yield Progress(boot.phase, bar.title, bar.done, bar.total, boot.watch.now())


def _tuning(boot: BootState, mark: LineMark) -> Iterator[Event]:
    tuning = boot.tuning
    match mark:
        case LineMark.TUNING_LOADED:
            loaded = boot.receipts.get("tuning_loaded", {}).get("configs", 0)
            tuning.loaded = loaded if isinstance(loaded, int) else 0
            if tuning.loaded:
                yield TuningHit(tuning.loaded, boot.watch.now())
        case LineMark.TUNING_STARTS:
            tuning.started, tuning.ended = boot.watch.now(), False
        case LineMark.TUNING_ENDS:
            tuning.ended = True
        case _:
            pass


def start_silence(boot: BootState) -> None:
    """At a heartbeat or a tick: the line before it was the last sign of progress."""
    if boot.active:
        boot.active = False
        boot.quiet_from = boot.watch.now()


def check_silence(boot: BootState) -> Iterator[Event]:
    """Report tuning or a stall if the boot has been silent for long enough."""
    if boot.served or boot.ended:
        return
    now = boot.watch.now()
    silent = now - boot.quiet_from
    tuning = boot.tuning
    if tuning.running and tuning.started is not None:
        waited = now - tuning.started
        if waited > (HIT_SECONDS if tuning.loaded else 0.0):
            yield from report_tuning_miss(boot)
    if not boot.stalled and silent > PATIENCE[boot.phase]:
        boot.stalled = True
        yield Stalled(boot.phase, silent, now)


def is_stalled(boot: BootState) -> bool:
    """Tuning never counts as stalled: healthy boots have been silent for longer than any limit while they tuned."""
    return boot.stalled and boot.phase is not Phase.TUNING_KERNELS
