from gb300serve.boot.liveness import Judgement
from gb300serve.boot.receipts import CheckedReceipt
from gb300serve.cli.views.boot import watch_lines
from gb300serve.lifecycle.events import HealthChanged, ReceiptsChecked, StackTaken, TuningForeseen

KEPT = CheckedReceipt("a", "kept")
DIFFERENT = CheckedReceipt("b", "different", expected=4.87, found=0.65, tolerance=0.03)
UNKNOWN = CheckedReceipt("c", "unknown", found="nobody can look into it here")


def test_stuck_says_by_which_signs_and_how_to_look() -> None:
    judgement = Judgement("stuck", ("nothing new in the log for 300 s", "no CPU time used"), active=False)
    told = HealthChanged(judgement, "weights from the disk", 374.0, "docker exec x py-spy dump --pid 1")
    assert list(watch_lines(told)) == [
        (
            "   374 s    stuck (nothing new in the log for 300 s, no CPU time used); waiting for weights from the disk",
            "error",
        ),
        ("              where it stands: docker exec x py-spy dump --pid 1", "dim"),
    ]


def test_back_at_work() -> None:
    told = HealthChanged(Judgement("working", ()), "weights from the disk", 400.0)
    assert list(watch_lines(told)) == [("   400 s    working; waiting for weights from the disk", "good")]


def test_a_miss_says_its_price_and_the_ways_out() -> None:
    told = TuningForeseen("nothing in the cache fits", "about 74 minutes", ("wait", "or stop it"), 405.0)
    assert list(watch_lines(told)) == [
        ("   405 s    nothing in the cache fits; tuning takes about 74 minutes", "warning"),
        ("              wait", "dim"),
        ("              or stop it", "dim"),
    ]


def test_a_stack_is_shown_line_by_line() -> None:
    assert [text.strip() for text, _ in watch_lines(StackTaken("Thread 1\n  read", 9.0))] == [
        "9 s    stack dump:", "Thread 1", "read",
    ]  # fmt: skip


def test_kept_receipts_are_one_line() -> None:
    assert list(watch_lines(ReceiptsChecked((KEPT, KEPT), binding=True))) == [
        ("          receipts: 2 of 2 kept", "good"),
    ]  # fmt: skip


def test_those_that_were_not_kept_are_named() -> None:
    assert list(watch_lines(ReceiptsChecked((KEPT, DIFFERENT, UNKNOWN), binding=False))) == [
        ("          receipts: 1 of 3 kept", "warning"),
        ("              different: b (wanted 4.87 ± 0.03, found 0.65)", "warning"),
        ("              not checked: c (nobody can look into it here)", "dim"),
        ("              --set changed this launch: lines that it changes do not count against it", "dim"),
    ]


def test_without_receipts_nothing_is_said() -> None:
    assert list(watch_lines(ReceiptsChecked((), binding=True))) == []
