import json
from dataclasses import replace
from pathlib import Path

import pytest

from gb300serve.adapters.system import SystemDisk
from gb300serve.journal.runs import ROOM_BYTES, Run, encoded
from tests.support.entries import record
from tests.support.faulty_disk import FaultyDisk


def run(directory: Path, disk: FaultyDisk | SystemDisk | None = None) -> Run:
    begun = Run(directory, disk or SystemDisk(), record())
    begun.prepare({"command": "docker run\n"})
    return begun


def test_a_run_as_it_is_written(tmp_path: Path) -> None:
    begun = run(tmp_path)
    assert (tmp_path / ".room").stat().st_size == ROOM_BYTES
    begun.log("first")
    begun.event({"kind": "StepBegan"})
    begun.write("metrics.txt", "up 1\n")
    begun.record = replace(begun.record, state="failed")
    begun.save()
    begun.make_room()
    begun.close()
    assert {each.name: each.read_text() for each in tmp_path.iterdir() if each.name != "run.json"} == {
        "command": "docker run\n",
        "log.txt": "first\n",
        "events.jsonl": '{"kind": "StepBegan"}\n',
        "metrics.txt": "up 1\n",
    }
    assert json.loads((tmp_path / "run.json").read_text())["state"] == "failed"


def test_a_line_is_there_as_soon_as_it_is_written(tmp_path: Path) -> None:
    run(tmp_path).log("one")
    assert (tmp_path / "log.txt").read_text() == "one\n"


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_full_disk_leaves_whole_lines_and_the_old_record(tmp_path: Path, share: float) -> None:
    disk = FaultyDisk(share=share)
    begun = run(tmp_path, disk)
    begun.log("first")
    disk.fault_at = disk.changes + 1
    with pytest.raises(OSError, match="No space left"):
        begun.log("second")
    begun.record = replace(begun.record, state="failed")
    with pytest.raises(OSError, match="No space left"):
        begun.save()
    assert (tmp_path / "log.txt").read_text() == "first\n"
    assert json.loads((tmp_path / "run.json").read_text())["state"] == "ready"
    disk.heal()
    begun.log("third")
    assert (tmp_path / "log.txt").read_text() == "first\nthird\n"


def test_what_was_not_launched_is_removed(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    begun = run(tmp_path / "r")
    begun.log("first")
    begun.discard()
    assert list(tmp_path.iterdir()) == []


def test_text_that_has_no_utf_8_is_written_escaped() -> None:
    assert encoded("a\udcffb") == b"a\\udcffb"
