import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gb300serve.adapters.system import SystemDisk
from gb300serve.journal.journal import StateUnusableError
from gb300serve.journal.runs import RESERVE_BYTES, Run, Runs, encode, parse_record
from tests.support.entries import record
from tests.support.fake_clock import START
from tests.support.faulty_disk import FaultyDisk, Killed

PAPERS = {"recipe.yaml": "format: gb300serve/1\n", "command": "docker run\n"}
# More changes of the disk than beginning a run makes.
MOST_CHANGES = 14


def runs(directory: Path, disk: FaultyDisk | SystemDisk | None = None) -> Runs:
    return Runs(directory / "state", disk or SystemDisk())


def test_a_run_has_a_directory_of_its_own(tmp_path: Path) -> None:
    begun = [runs(tmp_path).begin(record(run=""), PAPERS) for _ in range(2)]
    names = ["20261129T195003Z-deepseek-v4.1-flash-v14", "20261129T195003Z-deepseek-v4.1-flash-v14-2"]
    assert [each.path.name for each in begun] == names
    assert [each.run for each in runs(tmp_path).all()] == names
    assert begun[0].path.stat().st_mode & 0o777 == 0o700
    assert {each.name: each.stat().st_mode & 0o777 for each in begun[0].path.iterdir()} == {
        ".room": 0o600, "command": 0o600, "recipe.yaml": 0o600, "run.json": 0o600,
    }  # fmt: skip


def test_records_come_in_their_order_and_others_are_passed_over(tmp_path: Path) -> None:
    kept = runs(tmp_path)
    second = kept.begin(record("v14", at=60.0), {}).record
    first = kept.begin(record("v13"), {}).record
    (kept.directory / "notes.txt").write_text("mine")
    (kept.directory / "empty").mkdir()
    (kept.directory / "broken").mkdir()
    (kept.directory / "broken" / "run.json").write_text('{"schema": "gb300serve.run/1", "ru')
    assert kept.all() == (first, second)
    assert kept.damaged() == ("broken",)


def test_a_record_is_rewritten_for_a_run_whose_command_is_gone(tmp_path: Path) -> None:
    kept = runs(tmp_path)
    begun = kept.begin(record(), {}).record
    kept.rewrite(replace(begun, state="cut-short"))
    assert [each.state for each in kept.all()] == ["cut-short"]


def test_checking_leaves_nothing(tmp_path: Path) -> None:
    runs(tmp_path).check()
    assert list((tmp_path / "state" / "runs").iterdir()) == []


def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "runs").write_text("")
    with pytest.raises(StateUnusableError) as caught:
        runs(tmp_path).check()
    assert caught.value.exit_code == 6
    assert caught.value.message == f"{tmp_path}/state/runs cannot be written: it is a file; nothing was launched"


@pytest.mark.parametrize("change", range(1, MOST_CHANGES))
def test_a_full_disk_leaves_no_half_run(tmp_path: Path, change: int) -> None:
    whole = 0
    with suppress(StateUnusableError):
        runs(tmp_path, FaultyDisk(change)).begin(record(), PAPERS)
        whole = 1
    assert len(runs(tmp_path).all()) == whole
    assert len(SystemDisk().names(tmp_path / "state" / "runs")) == whole


@pytest.mark.parametrize("change", range(1, MOST_CHANGES))
def test_killed_while_it_begins(tmp_path: Path, change: int) -> None:
    with suppress(Killed):
        runs(tmp_path, FaultyDisk(change, killed=True)).begin(record(), PAPERS)
    assert len(runs(tmp_path).all()) <= 1
    runs(tmp_path).begin(record(), PAPERS)
    assert runs(tmp_path).all()[-1].plan == "plan-v14"


def run(directory: Path, disk: FaultyDisk | SystemDisk | None = None) -> Run:
    begun = Run(directory, disk or SystemDisk(), record())
    begun.prepare({"command": "docker run\n"})
    return begun


def test_a_run_as_it_is_written(tmp_path: Path) -> None:
    begun = run(tmp_path)
    assert (tmp_path / ".room").stat().st_size == RESERVE_BYTES
    begun.log("first")
    begun.event({"kind": "StepBegan"})
    begun.write("metrics.txt", "up 1\n")
    begun.record = replace(begun.record, state="failed")
    begun.save()
    begun.release_reserve()
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
    assert encode("a\udcffb") == b"a\\udcffb"


WHOLE = record(
    process="boot/123",
    reason="faster",
    overrides=("engine.options.port=1",),
    kept=True,
    ended=START + 500.0,
    image={"reference": "a:b", "id": "sha256:aa", "digests": []},
    patches={"/p/hook.py": "aa"},
    phases=(("starting", 21.0), ("serving", 16.5)),
    receipts=({"name": "offload", "values": {"gib": 61.17}},),
    verdict={"message": "it failed"},
    exit={"tool": 8, "container": 1},
    log={"lines": 3, "complete": True},
)


def test_a_record_is_read_back() -> None:
    assert parse_record(json.loads(json.dumps(WHOLE.as_json()))) == WHOLE
    assert parse_record(json.loads(json.dumps(record().as_json()))) == record()


def test_the_schema_comes_first() -> None:
    assert next(iter(WHOLE.as_json().items())) == ("schema", "gb300serve.run/1")


@pytest.mark.parametrize("missing", ["schema", "run", "lane", "release", "on", "plan", "verb", "by", "began"])
def test_what_lacks_the_essential_is_no_record(missing: str) -> None:
    assert parse_record(WHOLE.as_json() | {missing: None}) is None


def test_a_good_run_has_been_ready_whatever_came_later() -> None:
    assert record(state="died").good
    assert not record(ready_seconds=None, state="failed").good


def test_names() -> None:
    assert (WHOLE.ref, WHOLE.container_id) == ("deepseek-v4.1-flash/v14", "id-v14")
    assert record(container=None).container_id is None
