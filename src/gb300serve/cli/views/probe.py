"""The results of `probe` as text."""

from collections.abc import Iterator, Sequence

from gb300serve.probe.suite import ProbeResult

_MARKS = {"passed": "passed", "failed": "FAILED", "explained": "no answer"}


def result_lines(result: ProbeResult) -> Iterator[str]:
    """One line for a passed probe; what was sent and received for any other one."""
    meaning = result.meaning if result.outcome != "passed" else result.received
    yield f"  {result.name:<20} {_MARKS[result.outcome]:<9} {result.seconds:6.1f} s  {meaning}"
    if result.outcome != "passed":
        yield f"      sent      {result.sent}"
        yield f"      received  {result.received}"


def summary(results: Sequence[ProbeResult]) -> str:
    """How many passed."""
    passed = sum(result.outcome == "passed" for result in results)
    explained = sum(result.outcome == "explained" for result in results)
    note = f", {explained} without an answer to judge" if explained else ""
    return f"{passed} of {len(results)} passed{note}"
