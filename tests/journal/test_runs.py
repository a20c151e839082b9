from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gb300serve.adapters.system import SystemDisk
from gb300serve.journal.journal import StateUnusableError
from gb300serve.journal.runs import Runs
from tests.support.entries import record
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
