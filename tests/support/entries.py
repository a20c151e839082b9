"""Entries of the journal and records of runs, for tests."""

from dataclasses import replace

from gb300serve.journal.journal import JournalEntry, Requester, RunningLane
from gb300serve.journal.runs import RunRecord
from tests.support.fake_clock import START

ALICE = Requester("alice", "station", 4711)
V13 = RunningLane("deepseek-v4.1-flash/v13", "dsv41-vllm", "id-v13", "plan-v13")
V14 = RunningLane("deepseek-v4.1-flash/v14", "dsv41-vllm", "id-v14", "plan-v14")


def entry(**changes: object) -> JournalEntry:
    """`up v14` from nothing, READY."""
    base = JournalEntry(START, "up", "docker", ALICE, "ready", "v14 became READY", after=(V14,), run="r1")
    return replace(base, **changes)  # type: ignore[arg-type]  # any field of it


def record(release: str = "v14", at: float = 0.0, **changes: object) -> RunRecord:
    """A good run that began `at` seconds after START."""
    base = RunRecord(
        run=f"run-{release}",
        lane="deepseek-v4.1-flash",
        release=release,
        on="docker",
        plan=f"plan-{release}",
        verb="up",
        by=ALICE,
        began=START + at,
        state="ready",
        ready_seconds=454.0,
        container={"name": "dsv41-vllm", "id": f"id-{release}"},
    )
    return replace(base, **changes)  # type: ignore[arg-type]  # any field of it
