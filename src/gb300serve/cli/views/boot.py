"""The screen of a launch."""

from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from rich.live import Live
from rich.text import Text

from gb300serve.app.actions import Invocation
from gb300serve.boot import events as boot
from gb300serve.boot.phases import Phase
from gb300serve.boot.progress import BootEstimate, Judgement
from gb300serve.boot.receipts import CheckedReceipt
from gb300serve.cli.colour import STYLES, terminal
from gb300serve.cli.console import TerminalConsole
from gb300serve.core.errors import Gb300Error
from gb300serve.core.text import printable, truncate
from gb300serve.core.values import Missing
from gb300serve.lifecycle import events
from gb300serve.lifecycle.launch import Launch

Line = tuple[str, str]
_STYLES = {"working": "good", "slow": "warning", "tuning": "warning", "stuck": "error"}


def clock(seconds: float) -> str:
    """Seconds since the container's start, at the beginning of each line."""
    return f"{seconds:6.0f} s"


def watch_lines(
    announcement: events.HealthChanged
    | events.TuningForeseen
    | events.StackTaken
    | events.ReceiptsChecked
    | events.SharedMemoryRead,
    invocation: Invocation,
) -> Iterator[Line]:
    """The lines of one announcement."""
    match announcement:
        case events.HealthChanged():
            yield from _health(announcement)
        case events.TuningForeseen(why, price, suggest, at):
            yield f"{clock(at)}    {why}; tuning takes {price}", "warning"
            yield from ((f"              {invocation.render(action)}", "dim") for action in suggest)
        case events.StackTaken(text, at):
            yield f"{clock(at)}    stack dump:", "warning"
            yield from ((f"              {line}", "dim") for line in text.splitlines())
        case events.ReceiptsChecked(receipts, binding):
            yield from receipt_lines(receipts, binding=binding)
        case events.SharedMemoryRead():
            yield _shared_memory(announcement)
        case _:
            assert_never(announcement)


def _health(change: events.HealthChanged) -> Iterator[Line]:
    judgement = change.judgement
    because = f" ({', '.join(judgement.because)})" if judgement.because else ""
    text = f"{clock(change.at)}    {judgement.health}{because}; waiting for {change.waits_for}"
    yield text, _STYLES[judgement.health]
    if change.stack_command:
        yield f"              print its stack: {change.stack_command}", "dim"


def receipt_lines(receipts: tuple[CheckedReceipt, ...], *, binding: bool = True) -> Iterator[Line]:
    """A summary, and a line for each receipt that is wrong or unknown."""
    wrong = [receipt for receipt in receipts if not receipt.good]
    kept = sum(receipt.state == "kept" for receipt in receipts)
    if receipts:
        yield f"          receipts: {kept} of {len(receipts)} kept", "warning" if wrong else "good"
    yield from ((f"              {receipt.sentence()}", "warning") for receipt in wrong)
    unknown = (receipt for receipt in receipts if receipt.state == "unknown")
    yield from ((f"              {receipt.sentence()}", "dim") for receipt in unknown)
    if wrong and not binding:
        yield "              --set changed this launch: receipts of changed lines do not count", "dim"


# Characters of a line; the echo of the configuration takes 5 kB.
LONGEST = 150
SIMULATED = "simulated Station: no GPU, no container, no model; the boot log's numbers are computed from the plan"


class BootView:
    """The screen of a launch: a line for every step and phase; on a terminal also a live last line."""

    def __init__(self, console: TerminalConsole, invocation: Invocation, expected: Mapping[str, float]) -> None:
        self.console = console
        self.invocation = invocation
        self.expected = expected
        self.serving = False
        self._survived: list[boot.CauseFound] = []
        rich = terminal(console.err, no_color=console.no_color)
        self.live = Live(console=rich, auto_refresh=False, transient=True) if rich.is_terminal else None

    def stop(self) -> None:
        if self.live:
            self.live.stop()
            self.live = None

    def show(self, announcement: events.Announcement) -> None:
        if isinstance(announcement, events.LogSeen):  # up to 1,000 per second: five times as fast as `match`
            if self.serving:
                self.console.result(announcement.line.text)
            return
        match announcement:
            case events.BootEvent(event):
                self._event(event)
            case events.Elapsed():
                pass  # Watching comes with it
            case events.Watching(ahead, judgement):
                self._wait(ahead, judgement)
            case (
                events.HealthChanged()
                | events.TuningForeseen()
                | events.StackTaken()
                | events.ReceiptsChecked()
                | events.SharedMemoryRead()
            ):
                for text, style in watch_lines(announcement, self.invocation):
                    self._say(text, style)
            case events.NotReady(why):
                self._say(f"not ready: {why}", "warning")
            case events.BecameReady():
                self._ready(announcement)
            case _:
                self._say(*_sentence(announcement))

    def _event(self, event: boot.Event) -> None:
        match event:
            case boot.PhaseEntered(phase, at):
                self._enter(phase, at)
            case boot.Progress():
                pass  # shown with the next tick
            case boot.Receipt(_, _, text, at):
                self._say(f"{clock(at)}    {truncate(text, LONGEST)}", "dim")
            case boot.TuningHit(configs, at):
                self._say(f"{clock(at)}    tuning cache loaded: {configs} configurations", "good")
            case boot.CauseFound(reason=reason, line_number=line, at=at):
                # The line is quoted once: in the failure, or when the lane becomes ready despite it.
                self._survived.append(event)
                self._say(f"{clock(at)}    {reason}, log line {line}", "error")
            case boot.Stalled(phase, silent, at):
                self._say(f"{clock(at)}    no progress in {phase} for {silent:.0f} s", "warning")
            case boot.StartupComplete(at):
                self._say(f"{clock(at)}    the server logged that it started; checking it", "dim")
            case boot.BootBegan():
                self._survived.clear()
            case boot.Stopped() | boot.TuningMiss():  # TuningForeseen shows the cost of a miss
                pass
            case _:
                assert_never(event)

    def _enter(self, phase: Phase, at: float) -> None:
        seconds = self.expected.get(phase.value)
        expected = "" if seconds is None else f"  (expected {seconds:.0f} s)"
        self._say(f"{clock(at)}  {phase.value}{expected}", "bold")

    def _ready(self, ready: events.BecameReady) -> None:
        for cause in self._survived:
            self._say(f"{clock(cause.at)}    despite {cause.reason}: {truncate(cause.text, LONGEST)}", "warning")
        self._survived.clear()
        proof = "" if ready.identity_known else " (its process start time could not be compared)"
        self._say(f"{clock(ready.seconds)}  READY: {ready.model} answers from {ready.name}{proof}", "good")

    def _say(self, text: str, style: str | None = None) -> None:
        shown = self._marked(printable(text))
        if self.live:
            # The terminal wraps the line: a long path can be copied.
            self.live.console.print(Text(shown, style=STYLES[style] if style else ""), soft_wrap=True)
        else:
            self.console.message(shown, style)

    def _wait(self, ahead: BootEstimate, judgement: Judgement) -> None:
        if self.live:
            mark = "" if judgement.health == "working" else f" [{judgement.health}]"
            text = f"{clock(ahead.at)}  {ahead.sentence()}{mark}"
            self.live.start()  # no effect after the first time
            self.live.update(Text(self._marked(printable(text)), style="cyan", no_wrap=True), refresh=True)

    def _marked(self, text: str) -> str:
        return f"[simulated] {text}" if self.invocation.on == "sim" else text


# Seconds of the boot between two estimates.
_ESTIMATE_EVERY = 15.0


class BootEvents:
    """Shows the events of one launch as JSON lines: `kind`, and its fields; estimates now and then.

    `Ready` has the URL and the served name of the model, `Failed` the exit code and the diagnosis.
    """

    def __init__(self, console: TerminalConsole, launch: Launch) -> None:
        self.console = console
        self.launch = launch
        self.serving = False
        self._estimated = -_ESTIMATE_EVERY
        self._at = 0.0

    def __enter__(self) -> "BootEvents":
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Gb300Error):
            self._failed(error)

    def begin(self, expected: dict[str, float]) -> "BootEvents":
        """The display for a launch with these seconds by phase."""
        self._write({"kind": "Launch", "release": self.launch.ref, "expected": expected})
        return self

    def stop(self) -> None:
        """Nothing is left to end."""

    def show(self, announcement: events.Announcement) -> None:
        match announcement:
            case events.LogSeen(line):
                self._at = line.elapsed
                if self.serving:
                    self._write({"kind": "Log", "at": line.elapsed, "text": line.text})
            case events.Watching(ahead, judgement) if ahead.at - self._estimated >= _ESTIMATE_EVERY:
                self._estimated = ahead.at
                self._write({"kind": "Estimate", **events.plain(ahead), "health": judgement.health})
            case events.BecameReady(name, model, seconds):
                ready = {"kind": "Ready", "url": self.launch.endpoint.url, "model": model, "seconds": seconds}
                self._write({**ready, "container": name})
            case _:
                described = events.describe(announcement)
                if described is not None:
                    self._write(described)

    def _failed(self, error: Gb300Error) -> None:
        """The error that ends the command; its message is also printed as text on standard error."""
        ending = getattr(error, "ending", None)
        diagnosis = ending.diagnosis.as_json() if ending else None
        failed = {"kind": "Failed", "exit": error.exit_code, "message": error.message, "hint": error.hint}
        self._write({**failed, "reason": ending.reason.value if ending else None, "diagnosis": diagnosis})

    def _write(self, record: dict[str, Any]) -> None:
        self.console.line(record)


def _shared_memory(read: events.SharedMemoryRead) -> Line:
    expected = "" if read.expected_gib is None else f"; fit expects {read.expected_gib:.2f} GiB"
    if isinstance(read.held, Missing):
        return f"          pinned host memory: not read, because {read.held.why}{expected}", "dim"
    return f"          pinned host memory: {read.held_gib:.2f} GiB (RssShmem of the engine){expected}", "good"


def _sentence(
    announcement: events.StepBegan | events.StepUndone | events.UndoFailed | events.SetAside | events.PutBack,
) -> tuple[str, str]:
    match announcement:
        case events.StepBegan(step):
            return step.describe(), "dim"
        case events.StepUndone(step):
            return f"undone: {step.describe()}", "warning"
        case events.UndoFailed(step, reason):
            return f"could not be undone: {step.describe()}: {reason}", "error"
        case events.SetAside(before, after):
            return f"kept {before} as {after}", "dim"
        case events.PutBack(name):
            return f"{name} was started again", "warning"
        case _:
            assert_never(announcement)
