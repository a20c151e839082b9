"""The journal under kills and full disks: what add returned for is there, and every line is whole."""

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from gb300serve.adapters.system import SystemClock, SystemDisk
from gb300serve.journal.journal import (
    Journal,
    JournalContents,
    Requester,
    StateUnusableError,
    format_stamp,
    format_time,
    get_text,
    parse_entry,
    parse_requester,
    parse_time,
)
from tests.support.entries import ALICE, V13, entry
from tests.support.fake_clock import START, FakeClock
from tests.support.faulty_disk import FaultyDisk, Killed
from tests.support.program import ROOT

FIRST, SECOND, THIRD = entry(run="first"), entry(run="second", said="naïve ☃ \ud800"), entry(run="third")
# More changes of the disk than one entry makes.
MOST_CHANGES = 8


def journal(directory: Path, disk: FaultyDisk | SystemDisk | None = None) -> Journal:
    return Journal(directory / "state", disk or SystemDisk(), FakeClock())


def lines(directory: Path) -> list[str]:
    return (directory / "state" / "journal.jsonl").read_text().splitlines(keepends=True)


def test_entries_are_lines_in_their_order(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    for each in (FIRST, SECOND, THIRD):
        kept.add(each)
    assert kept.read() == JournalContents((FIRST, SECOND, THIRD))
    assert [json.loads(line)["run"] for line in lines(tmp_path)] == ["first", "second", "third"]
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert kept.path.stat().st_mode & 0o777 == 0o600


def test_nothing_was_written_yet(tmp_path: Path) -> None:
    assert journal(tmp_path).read() == JournalContents()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99, 1.0])
@pytest.mark.parametrize("change", range(1, MOST_CHANGES))
def test_killed_at_any_change(tmp_path: Path, change: int, share: float) -> None:
    journal(tmp_path).add(FIRST)
    with (tmp_path / "state" / "journal.jsonl").open("ab") as file:
        file.write(b'{"at": "2026-11-29T19:50')  # another writer was killed before
    with suppress(Killed):
        journal(tmp_path, FaultyDisk(change, share, killed=True)).add(SECOND)
    journal(tmp_path).add(THIRD)
    runs = [each.run for each in journal(tmp_path).read().entries]
    assert runs in (["first", "third"], ["first", "second", "third"])
    assert all(line.endswith("\n") and json.loads(line) for line in lines(tmp_path))
    assert '{"at": "2026-11-29T19:50' in journal(tmp_path).read().torn


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("change", range(1, MOST_CHANGES))
def test_a_full_disk_refuses_whole_entries(tmp_path: Path, change: int, share: float) -> None:
    journal(tmp_path).add(FIRST)
    disk = FaultyDisk(change, share)
    written = ["first"]
    with suppress(OSError):
        journal(tmp_path, disk).add(SECOND)
        written.append("second")
    assert [each.run for each in journal(tmp_path).read().entries] == written
    disk.heal()
    journal(tmp_path, disk).add(THIRD)
    assert [each.run for each in journal(tmp_path).read().entries] == [*written, "third"]
    assert all(json.loads(line) for line in lines(tmp_path))


def test_a_line_that_only_lacks_its_end_is_an_entry(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    kept.add(FIRST)
    kept.path.write_bytes(kept.path.read_bytes().rstrip(b"\n"))
    assert kept.read() == JournalContents((FIRST,))
    kept.add(SECOND)
    assert kept.read() == JournalContents((FIRST, SECOND))


def test_blocks_that_a_crash_left_empty_are_kept_aside(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    kept.add(FIRST)
    with kept.path.open("ab") as file:
        file.write(b"\0" * 20 + b"\xff")
    kept.add(SECOND)
    story = kept.read()
    assert (story.entries, story.torn) == ((FIRST, SECOND), ("\0" * 20 + "\ufffd",))


def test_a_writer_that_hangs_is_not_waited_for_forever(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    kept.add(FIRST)
    hold = SystemDisk().try_hold(kept.path)
    assert hold is not None
    with pytest.raises(TimeoutError, match="another process has held its lock for over 5 s"):
        kept.add(SECOND)
    hold.release()
    kept.add(SECOND)
    assert kept.read() == JournalContents((FIRST, SECOND))


WRITER = """
import sys
from pathlib import Path
from gb300serve.adapters.system import SystemClock
from gb300serve.adapters.system import SystemDisk
from gb300serve.journal.journal import Journal
from tests.support.entries import entry
kept = Journal(Path(sys.argv[1]), SystemDisk(), SystemClock())
for number in range(100000):
    kept.add(entry(run=f"{sys.argv[2]}-{number}", said="x" * (number % 5000)))
    print(number, flush=True)
"""


def test_two_writers_killed_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    told: dict[str, int] = {}
    for round_ in range(3):
        writers = [start_writer(tmp_path, f"{round_}{name}") for name in "ab"]
        for name, writer in writers:
            assert writer.stdout is not None
            for line in writer.stdout:
                told[name] = int(line)
                if told[name] >= 20:
                    break
        for name, writer in writers:
            writer.send_signal(signal.SIGKILL)
            rest, _ = writer.communicate()
            told[name] = max([told[name], *map(int, rest.split())])
    kept = Journal(tmp_path, SystemDisk(), SystemClock())
    kept.add(FIRST)
    runs = {each.run for each in kept.read().entries}
    assert {f"{name}-{number}" for name, last in told.items() for number in range(last + 1)} <= runs
    assert all(json.loads(line) for line in kept.path.read_text().splitlines())


def start_writer(directory: Path, name: str) -> tuple[str, subprocess.Popen[str]]:
    words = [sys.executable, "-c", WRITER, str(directory), name]
    paths = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    return name, subprocess.Popen(words, env=paths, text=True, stdout=subprocess.PIPE)


def test_what_could_take_no_entry_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    journal(tmp_path).check()
    assert journal(tmp_path).read() == JournalContents()
    kept = journal(tmp_path / "other")
    kept.path.mkdir(parents=True)
    with pytest.raises(StateUnusableError) as caught:
        kept.check()
    assert caught.value.message == f"{kept.path} cannot be written: Is a directory; nothing was launched"


WHOLE = entry(before=(V13,), reason="faster", verb="up", station="east")


def test_an_entry_as_a_line() -> None:
    assert WHOLE.as_json() == {
        "at": "2026-11-29T19:50:03.000Z",
        "verb": "up",
        "on": "docker",
        "by": {"user": "alice", "host": "station", "pid": 4711},
        "from": [{"release": "deepseek-v4.1-flash/v13", "container": "dsv41-vllm", "id": "id-v13", "plan": "plan-v13"}],
        "to": [{"release": "deepseek-v4.1-flash/v14", "container": "dsv41-vllm", "id": "id-v14", "plan": "plan-v14"}],
        "result": "ready",
        "said": "v14 became READY",
        "reason": "faster",
        "run": "r1",
        "station": "east",
    }


def test_a_line_is_read_back_and_later_keys_are_passed_over() -> None:
    assert parse_entry(json.loads(json.dumps(WHOLE.as_json() | {"later": 1}))) == WHOLE


@pytest.mark.parametrize("missing", ["at", "verb", "on", "by", "result"])
def test_what_lacks_the_essential_is_no_entry(missing: str) -> None:
    assert parse_entry(WHOLE.as_json() | {missing: None}) is None


def test_other_json_is_no_entry() -> None:
    values: tuple[object, ...] = (None, [], "x", 1, {})
    assert [parse_entry(value) for value in values] == [None] * 5


def test_askers() -> None:
    assert parse_requester({"user": "alice", "host": "station", "pid": 4711}) == ALICE
    assert parse_requester({"user": "alice"}) is None
    assert str(Requester("alice", "station", 4711)) == "alice@station, process 4711"


def test_texts() -> None:
    assert (get_text({"a": "b"}, "a"), get_text({"a": 1}, "a"), get_text({}, "a")) == ("b", None, None)


def test_moments_are_utc_and_read_back() -> None:
    assert format_time(START + 0.25) == "2026-11-29T19:50:03.250Z"
    assert parse_time("2026-11-29T19:50:03.250Z") == START + 0.25
    assert format_stamp(START) == "20261129T195003Z"


def test_what_is_no_moment_is_none() -> None:
    assert [parse_time(value) for value in (None, 3, "soon", "")] == [None] * 4
