"""What a signal does to the course of a boot, and what there is to tell of it."""

from collections.abc import Iterator

from gb300serve.boot.bars import read_bar
from gb300serve.boot.course import Course
from gb300serve.boot.events import (
    Event,
    PhaseEntered,
    Progress,
    Receipt,
    StartupComplete,
    Stopped,
    TuningHit,
    TuningMiss,
)
from gb300serve.boot.phases import Phase
from gb300serve.boot.signals.model import LineMark, Signal, Value, values_of

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
