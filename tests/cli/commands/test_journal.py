from pathlib import Path

from gb300serve.adapters.system import SystemClock, SystemDisk
from gb300serve.journal.journal import Journal
from tests.support.entries import V13, V14, entry
from tests.support.fake_clock import START
from tests.support.invoke import Answer, run

FIRST = entry(after=(V13,), said="v13 became READY", run="r0")
SECOND = entry(at=START + 60.0, before=(V13,), after=(V14,), reason="faster \x1b[31m", run="r1")
THIRD = entry(at=START + 120.0, verb="down", on="sim", result="stopped", said="", before=(V14,), after=(), run=None)


def asked(tmp_path: Path, *words: str) -> Answer:
    kept = Journal(tmp_path / "gb300serve", SystemDisk(), SystemClock())
    for each in (FIRST, SECOND, THIRD):
        kept.add(each)
    return run("journal", *words, variables={"XDG_STATE_HOME": str(tmp_path)})


def test_who_changed_what(tmp_path: Path) -> None:
    assert asked(tmp_path).out == (
        "2026-11-29 19:50:03Z  up: ready, requested by alice@station, process 4711\n"
        "    nothing → deepseek-v4.1-flash/v13 (dsv41-vllm)\n"
        "    v13 became READY\n"
        "    run r0\n"
        "2026-11-29 19:51:03Z  up: ready, requested by alice@station, process 4711\n"
        "    deepseek-v4.1-flash/v13 (dsv41-vllm) → deepseek-v4.1-flash/v14 (dsv41-vllm)\n"
        "    v14 became READY\n"
        "    reason: faster \n"
        "    run r1\n"
        "2026-11-29 19:52:03Z  down on the simulated Station: stopped, requested by alice@station, process 4711\n"
        "    deepseek-v4.1-flash/v14 (dsv41-vllm) → nothing\n"
    )


def test_the_last_ones_only(tmp_path: Path) -> None:
    assert asked(tmp_path, "-n", "1").out.startswith("2026-11-29 19:52:03Z  down")
    assert run("journal", "-n", "0", variables={"XDG_STATE_HOME": str(tmp_path)}).out == "no entries\n"
    assert run("journal", "-n", "9", variables={"XDG_STATE_HOME": str(tmp_path)}).out.count("requested by") == 3


def test_as_json(tmp_path: Path) -> None:
    assert asked(tmp_path, "--json").document == {
        "schema": "gb300serve.journal/1",
        "entries": [each.as_json() for each in (FIRST, SECOND, THIRD)],
        "torn": [],
    }


def test_what_was_cut_short_is_said(tmp_path: Path) -> None:
    asked(tmp_path)
    with (tmp_path / "gb300serve" / "journal.jsonl").open("a") as file:
        file.write('{"at": "2026')
    answer = run("journal", variables={"XDG_STATE_HOME": str(tmp_path)})
    assert (answer.code, answer.err) == (0, "incomplete lines of interrupted writes: 1\n")


def test_a_journal_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "gb300serve" / "journal.jsonl").mkdir(parents=True)
    answer = run("journal", variables={"XDG_STATE_HOME": str(tmp_path)})
    assert answer.code == 6
    assert answer.err.startswith(f"gb300serve: {tmp_path}/gb300serve/journal.jsonl cannot be read: Is a directory\n")


def test_a_reason_of_several_lines_imitates_no_entry(tmp_path: Path) -> None:
    kept = Journal(tmp_path / "gb300serve", SystemDisk(), SystemClock())
    kept.add(entry(reason="x\n2026-11-29 19:51:03Z  down: stopped, requested by bob@station, process 1", run=None))
    out = run("journal", variables={"XDG_STATE_HOME": str(tmp_path)}).out
    assert [line for line in out.splitlines() if "bob@station" in line] == [
        "    reason: x 2026-11-29 19:51:03Z down: stopped, requested by bob@station, process 1"
    ]
