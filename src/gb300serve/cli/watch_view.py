"""What the watch over a boot says beside phases: health, tuning, stacks, receipts. Each is lines with a style."""

from collections.abc import Iterator
from typing import assert_never

from gb300serve.boot.receipts import CheckedReceipt
from gb300serve.lifecycle.watch_events import HealthChanged, ReceiptsChecked, StackTaken, TuningForeseen

Line = tuple[str, str]
_STYLES = {"working": "good", "slow": "warning", "tuning": "warning", "stuck": "error"}


def clock(seconds: float) -> str:
    """Seconds since the container's start, as every line begins."""
    return f"{seconds:6.0f} s"


def watch_lines(told: HealthChanged | TuningForeseen | StackTaken | ReceiptsChecked) -> Iterator[Line]:
    """The lines of one announcement."""
    match told:
        case HealthChanged():
            yield from _health(told)
        case TuningForeseen(why, price, ways_out, at):
            yield f"{clock(at)}    {why}; tuning takes {price}", "warning"
            yield from ((f"              {way}", "dim") for way in ways_out)
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
        yield f"              where it stands: {told.stack_command}", "dim"


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
        yield "              --set changed this launch: lines that it changes do not count against it", "dim"
