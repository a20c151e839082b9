"""The screen of a launch."""

from collections.abc import Callable, Iterator, Mapping
from typing import assert_never

from rich.live import Live
from rich.text import Text

from gb300serve.app.actions import Invocation
from gb300serve.boot.events import (
    BootBegan,
    CauseFound,
    Event,
    PhaseEntered,
    Progress,
    Receipt,
    Stalled,
    StartupComplete,
    Stopped,
    TuningHit,
    TuningMiss,
)
from gb300serve.boot.liveness import Judgement
from gb300serve.boot.phases import Phase
from gb300serve.boot.progress import BootEstimate
from gb300serve.boot.receipts import CheckedReceipt
from gb300serve.cli.colour import STYLES, terminal
from gb300serve.cli.console import TerminalConsole
from gb300serve.core.text import printable
from gb300serve.lifecycle.events import (
    Announcement,
    BecameReady,
    BootEvent,
    Elapsed,
    HealthChanged,
    LogSeen,
    NotReady,
    PutBack,
    ReceiptsChecked,
    SetAside,
    StackTaken,
    StepBegan,
    StepUndone,
    TuningForeseen,
    UndoFailed,
    Watching,
)

Line = tuple[str, str]
_STYLES = {"working": "good", "slow": "warning", "tuning": "warning", "stuck": "error"}


def clock(seconds: float) -> str:
    """Seconds since the container's start, as every line begins."""
    return f"{seconds:6.0f} s"


def watch_lines(
    told: HealthChanged | TuningForeseen | StackTaken | ReceiptsChecked, invocation: Invocation
) -> Iterator[Line]:
    """The lines of one announcement."""
    match told:
        case HealthChanged():
            yield from _health(told)
        case TuningForeseen(why, price, suggest, at):
            yield f"{clock(at)}    {why}; tuning takes {price}", "warning"
            yield from ((f"              {invocation.render(action)}", "dim") for action in suggest)
        case StackTaken(text, at):
            yield f"{clock(at)}    stack dump:", "warning"
            yield from ((f"              {line}", "dim") for line in text.splitlines())
        case ReceiptsChecked(receipts, binding):
            yield from receipt_lines(receipts, binding=binding)
        case _:
            assert_never(told)


def _health(told: HealthChanged) -> Iterator[Line]:
    judgement = told.judgement
    because = f" ({', '.join(judgement.because)})" if judgement.because else ""
    yield f"{clock(told.at)}    {judgement.health}{because}; waiting for {told.waits_for}", _STYLES[judgement.health]
    if told.stack_command:
        yield f"              print its stack: {told.stack_command}", "dim"


def receipt_lines(receipts: tuple[CheckedReceipt, ...], *, binding: bool = True) -> Iterator[Line]:
    """One line when all were kept, else one for each that was not."""
    wrong = [one for one in receipts if not one.good]
    kept = sum(one.state == "kept" for one in receipts)
    if receipts:
        yield f"          receipts: {kept} of {len(receipts)} kept", "warning" if wrong else "good"
    for one in wrong:
        yield f"              {one.sentence()}", "warning"
    for one in receipts:
        if one.state == "unknown":
            yield f"              {one.sentence()}", "dim"
    if wrong and not binding:
        yield "              --set changed this launch: receipts of changed lines are shown but do not count", "dim"


LONGEST = 150
SIMULATED = "simulated Station: no GPU, no container, no model; the boot log's numbers are computed from the plan"


class BootView:
    """The screen of a launch: a line for every step and phase; on a terminal also a live last line."""

    def __init__(self, console: TerminalConsole, invocation: Invocation, expected: Mapping[str, float]) -> None:
        self.console = console
        self.invocation = invocation
        self.expected = expected
        self.serving = False
        self._survived: list[CauseFound] = []
        rich = terminal(console.err, no_color=console.no_color)
        self.live = Live(console=rich, auto_refresh=False, transient=True) if rich.is_terminal else None

    @classmethod
    def opener(cls, console: TerminalConsole, invocation: Invocation) -> Callable[[Mapping[str, float]], "BootView"]:
        """Opens the screen for the expected seconds by phase."""

        def open_view(expected: Mapping[str, float]) -> BootView:
            view = cls(console, invocation, expected)
            if view.live:
                view.live.start()
            return view

        return open_view

    def stop(self) -> None:
        """End the live line; plain text follows."""
        if self.live:
            self.live.stop()
            self.live = None

    def show(self, announcement: Announcement) -> None:
        """Print one announcement."""
        if isinstance(announcement, LogSeen):  # up to 1,000 per second, and a match statement takes five times as long
            if self.serving:
                self.console.result(announcement.line.text)
            return
        match announcement:
            case BootEvent(event):
                self._event(event)
            case Elapsed():
                pass  # Watching comes with it
            case Watching(ahead, judgement):
                self._wait(ahead, judgement)
            case HealthChanged() | TuningForeseen() | StackTaken() | ReceiptsChecked():
                for text, style in watch_lines(announcement, self.invocation):
                    self._say(text, style)
            case NotReady(why):
                self._say(f"not ready: {why}", "warning")
            case BecameReady():
                self._ready(announcement)
            case _:
                self._say(*_sentence(announcement))

    def _event(self, event: Event) -> None:
        match event:
            case PhaseEntered(phase, at):
                self._enter(phase, at)
            case Progress():
                pass  # shown with the next tick
            case Receipt(_, _, text, at):
                self._say(f"{clock(at)}    {_short(text)}", "dim")
            case TuningHit(configs, at):
                self._say(f"{clock(at)}    tuning cache loaded: {configs} configurations", "good")
            case CauseFound(reason=reason, line_number=line, at=at):
                # The line is quoted once: when the boot fails of it, or when it serves in spite of it.
                self._survived.append(event)
                self._say(f"{clock(at)}    {reason}, log line {line}", "error")
            case Stalled(phase, silent, at):
                self._say(f"{clock(at)}    no progress in {phase} for {silent:.0f} s", "warning")
            case StartupComplete(at):
                self._say(f"{clock(at)}    the server logged that it started; checking it", "dim")
            case BootBegan():
                self._survived.clear()
            case Stopped() | TuningMiss():  # TuningForeseen shows the cost of a miss
                pass
            case _:
                assert_never(event)

    def _enter(self, phase: Phase, at: float) -> None:
        self._say(f"{clock(at)}  {phase.value}{self._expected(phase)}", "bold")

    def _expected(self, phase: Phase) -> str:
        seconds = self.expected.get(phase.value)
        return "" if seconds is None else f"  (expected {seconds:.0f} s)"

    def _ready(self, ready: BecameReady) -> None:
        for cause in self._survived:
            self._say(f"{clock(cause.at)}    in spite of {cause.reason}: {_short(cause.text)}", "warning")
        self._survived.clear()
        proof = "" if ready.identity_known else " (its process start time could not be compared)"
        self._say(f"{clock(ready.seconds)}  READY: {ready.model} answers from {ready.name}{proof}", "good")

    def _say(self, text: str, style: str | None = None) -> None:
        shown = self._marked(printable(text))
        if self.live:
            # The terminal breaks a long line, not we: an image or a path is copied whole.
            self.live.console.print(Text(shown, style=STYLES[style] if style else ""), soft_wrap=True)
        else:
            self.console.message(shown, style)

    def _wait(self, ahead: BootEstimate, judgement: Judgement) -> None:
        if self.live:
            text = f"{clock(ahead.at)}  {ahead.sentence()}{_health_mark(judgement)}"
            self.live.update(Text(self._marked(printable(text)), style="cyan", no_wrap=True), refresh=True)

    def _marked(self, text: str) -> str:
        return f"[simulated] {text}" if self.invocation.on == "sim" else text


def _sentence(announcement: StepBegan | StepUndone | UndoFailed | SetAside | PutBack) -> tuple[str, str]:
    """What was done to containers, and the style to say it in."""
    match announcement:
        case StepBegan(step):
            return step.describe(), "dim"
        case StepUndone(step):
            return f"taken back: {step.describe()}", "warning"
        case UndoFailed(step, reason):
            return f"could not be taken back: {step.describe()}: {reason}", "error"
        case SetAside(before, after):
            return f"kept {before} as {after}", "dim"
        case PutBack(name):
            return f"{name} was started again", "warning"
        case _:
            assert_never(announcement)


def _short(text: str) -> str:
    """The engine's echo of its configuration is a line of 5 kB; the log has it whole."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _health_mark(judgement: Judgement) -> str:
    """Empty for a working engine."""
    return "" if judgement.health == "working" else f" [{judgement.health}]"
