from io import StringIO

import pytest

from gb300serve.app.actions import Invocation
from gb300serve.boot.events import BootBegan, CauseFound, PhaseEntered, Progress, Receipt, TuningHit, TuningMiss
from gb300serve.boot.phases import Phase
from gb300serve.boot.progress import Judgement, ProgressCounter, estimate
from gb300serve.boot.receipts import CheckedReceipt
from gb300serve.cli.console import TerminalConsole
from gb300serve.cli.views.boot import BootView, watch_lines
from gb300serve.core.errors import Action
from gb300serve.core.values import Missing
from gb300serve.lifecycle.backend import LogLine
from gb300serve.lifecycle.events import (
    BecameReady,
    BootEvent,
    Elapsed,
    HealthChanged,
    LogSeen,
    NotReady,
    ReceiptsChecked,
    SharedMemoryRead,
    StackTaken,
    StepBegan,
    TuningForeseen,
    Watching,
)
from gb300serve.lifecycle.steps import RenameContainer

EXPECTED = {"loading-weights": 153.0, "profiling": 178.0}
BAR = ProgressCounter("Loading safetensors checkpoint shards", 65, 131, began=23.0, at=88.0)
AHEAD = estimate(Phase.LOADING_WEIGHTS, 88.0, 23.0, EXPECTED, BAR)
WORKING = Judgement("working", ())


class Terminal(StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


def opened(console: TerminalConsole, *, simulated: bool) -> BootView:
    return BootView(console, Invocation("v14", "sim" if simulated else "docker"), EXPECTED)


def shown(*announcements: object, terminal: bool = False, simulated: bool = False) -> str:
    err = Terminal() if terminal else StringIO()
    view = opened(TerminalConsole(StringIO(), err, no_color=True), simulated=simulated)
    for announcement in announcements:
        view.show(announcement)  # type: ignore[arg-type]  # what a test says is an announcement
    view.stop()
    return err.getvalue()


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (PhaseEntered(Phase.LOADING_WEIGHTS, 23.0), "    23 s  loading-weights  (expected 153 s)\n"),
        (PhaseEntered(Phase.COMPILING, 23.0), "    23 s  compiling\n"),
        (Receipt("x", {}, "y" * 200, 9.0), f"     9 s    {'y' * 149}…\n"),
        (TuningHit(210, 406.0), "   406 s    tuning cache loaded: 210 configurations\n"),
        (TuningMiss(0, 406.0), ""),
        (Progress(Phase.LOADING_WEIGHTS, "shards", 1, 2, 30.0), ""),
        (CauseFound("gpu-oom", {}, 4, "OutOfMemoryError", 88.0), "    88 s    gpu-oom, log line 4\n"),
    ],
)
def test_what_the_log_means(event: object, line: str) -> None:
    assert shown(BootEvent(event)) == line  # type: ignore[arg-type]  # any of the events


def test_what_a_miss_costs_stands_in_its_place() -> None:
    told = TuningForeseen("the cache has no matching set", "about 74 minutes", ("wait",), 406.0)
    assert shown(told).splitlines()[0] == "   406 s    the cache has no matching set; tuning takes about 74 minutes"


def test_without_a_terminal_no_line_moves() -> None:
    assert shown(Elapsed(Phase.LOADING_WEIGHTS, 88.0), Watching(AHEAD, WORKING)) == ""


def test_on_a_terminal_the_last_line_says_what_is_awaited() -> None:
    said = shown(Watching(AHEAD, WORKING), terminal=True, simulated=True)
    assert "[simulated]     88 s  loading-weights for 65 s of about 153" in said
    slow = shown(Watching(AHEAD, Judgement("slow", ())), terminal=True)
    assert "loading-weights for 65 s" in slow


def test_ready_and_what_is_not_yet() -> None:
    ready = BecameReady("dsv41-vllm", "dsv41-flash-uva", 454.0, identity_known=False)
    assert shown(NotReady("the port does not answer yet"), ready, simulated=True) == (
        "[simulated] not ready: the port does not answer yet\n"
        "[simulated]    454 s  READY: dsv41-flash-uva answers from dsv41-vllm "
        "(its process start time could not be compared)\n"
    )


def test_the_words_of_a_cause_are_shown_where_the_boot_outlives_it() -> None:
    ready = BecameReady("dsv41-vllm", "dsv41-flash-uva", 454.0, identity_known=True)
    cause = BootEvent(CauseFound("hook-not-installed", {}, 4, "no hook", 88.0))
    assert shown(cause, ready).splitlines() == [
        "    88 s    hook-not-installed, log line 4",
        "    88 s    despite hook-not-installed: no hook",
        "   454 s  READY: dsv41-flash-uva answers from dsv41-vllm",
    ]
    assert "despite" not in shown(cause, BootEvent(BootBegan(2)), ready)


def test_the_log_is_shown_once_it_serves() -> None:
    out = StringIO()
    view = opened(TerminalConsole(out, StringIO()), simulated=False)
    view.show(LogSeen(LogLine("before", 1.0)))
    view.serving = True
    view.show(LogSeen(LogLine("after", 2.0)))
    assert out.getvalue() == "after\n"


def test_a_long_line_is_left_to_the_terminal_to_break() -> None:
    err = Terminal()
    step = RenameContainer("1234", "dsv41-vllm", "dsv41-vllm-kept-v14-20261129T195003Z-" + "x" * 200)
    view = opened(TerminalConsole(StringIO(), err, no_color=True), simulated=True)
    view.show(StepBegan(step))
    view.stop()
    assert f"[simulated] {step.describe()}\x1b" in err.getvalue()


KEPT = CheckedReceipt("a", "kept")
DIFFERENT = CheckedReceipt("b", "different", expected=4.87, found=0.65, tolerance=0.03)
UNKNOWN = CheckedReceipt("c", "unknown", found="nobody can look into it here")


def test_stuck_says_by_which_signs_and_how_to_look() -> None:
    judgement = Judgement("stuck", ("nothing new in the log for 300 s", "no CPU time used"), active=False)
    told = HealthChanged(judgement, "weights from the disk", 374.0, "docker exec x py-spy dump --pid 1")
    assert list(watch_lines(told, Invocation("v14"))) == [
        (
            "   374 s    stuck (nothing new in the log for 300 s, no CPU time used); waiting for weights from the disk",
            "error",
        ),
        ("              print its stack: docker exec x py-spy dump --pid 1", "dim"),
    ]


def test_back_at_work() -> None:
    told = HealthChanged(Judgement("working", ()), "weights from the disk", 400.0)
    assert list(watch_lines(told, Invocation("v14"))) == [
        ("   400 s    working; waiting for weights from the disk", "good")
    ]


def test_a_miss_says_its_price_and_the_ways_out() -> None:
    told = TuningForeseen(
        "the cache has no matching set", "about 74 minutes", ("wait", Action("down", "or stop it")), 405.0
    )
    assert list(watch_lines(told, Invocation("v14"))) == [
        ("   405 s    the cache has no matching set; tuning takes about 74 minutes", "warning"),
        ("              wait", "dim"),
        ("              or stop it: gb300serve down v14", "dim"),
    ]


def test_a_stack_is_shown_line_by_line() -> None:
    assert [text.strip() for text, _ in watch_lines(StackTaken("Thread 1\n  read", 9.0), Invocation("v14"))] == [
        "9 s    stack dump:", "Thread 1", "read",
    ]  # fmt: skip


def test_kept_receipts_are_one_line() -> None:
    assert list(watch_lines(ReceiptsChecked((KEPT, KEPT), binding=True), Invocation("v14"))) == [
        ("          receipts: 2 of 2 kept", "good"),
    ]  # fmt: skip


def test_those_that_were_not_kept_are_named() -> None:
    assert list(watch_lines(ReceiptsChecked((KEPT, DIFFERENT, UNKNOWN), binding=False), Invocation("v14"))) == [
        ("          receipts: 1 of 3 kept", "warning"),
        ("              different: b (expected 4.87 ± 0.03, found 0.65)", "warning"),
        ("              not checked: c (nobody can look into it here)", "dim"),
        ("              --set changed this launch: receipts of changed lines do not count", "dim"),
    ]


def test_without_receipts_nothing_is_said() -> None:
    assert list(watch_lines(ReceiptsChecked((), binding=True), Invocation("v14"))) == []


@pytest.mark.parametrize(
    ("held", "expected", "line", "style"),
    [
        (int(327.75 * 2**30), 327.75, "327.75 GiB (RssShmem of the engine); fit expects 327.75 GiB", "good"),
        (2**30, None, "1.00 GiB (RssShmem of the engine)", "good"),
        (Missing("x is closed"), 250.0, "not read, because x is closed; fit expects 250.00 GiB", "dim"),
    ],
)
def test_pinned_host_memory(held: int | Missing, expected: float | None, line: str, style: str) -> None:
    shown = list(watch_lines(SharedMemoryRead(held, expected), Invocation("v14")))
    assert shown == [(f"          pinned host memory: {line}", style)]
