import os
from pathlib import Path

import pytest

from gb300serve.adapters.system import SystemDisk

DISK = SystemDisk()


def test_directories_are_the_users_alone(tmp_path: Path) -> None:
    DISK.make(tmp_path / "a" / "b")
    DISK.make(tmp_path / "a" / "b")
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o700, 0o700]
    assert DISK.claim(tmp_path / "a" / "c")
    assert not DISK.claim(tmp_path / "a" / "c")
    assert DISK.names(tmp_path / "a") == ("b", "c")
    assert DISK.names(tmp_path / "nowhere") == ()


def test_a_file_in_the_place_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(NotADirectoryError):
        DISK.make(tmp_path / "a")
    assert DISK.names(tmp_path / "a") == ()
    assert DISK.read(tmp_path / "a" / "b") is None


def test_a_tape_grows(tmp_path: Path) -> None:
    for text in (b"one\n", b"two\n"):
        tape = DISK.open(tmp_path / "log")
        tape.write(text)
        tape.sync()
        tape.close()
    assert DISK.read(tmp_path / "log") == b"one\ntwo\n"
    DISK.truncate(tmp_path / "log", 4)
    assert DISK.read(tmp_path / "log") == b"one\n"
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_replacing_and_overwriting(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    DISK.replace(path, b"a longer text")
    DISK.overwrite(path, b"short")
    assert DISK.read(path) == b"short"
    DISK.replace(path, b"new")
    assert (DISK.read(path), DISK.names(tmp_path)) == (b"new", ("run.json",))


def test_what_cannot_be_replaced_stays_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    with pytest.raises(IsADirectoryError):
        DISK.replace(tmp_path / "run.json", b"new")
    assert DISK.names(tmp_path) == ("run.json",)


def test_removing(tmp_path: Path) -> None:
    DISK.make(tmp_path / "run")
    DISK.replace(tmp_path / "run" / "log", b"")
    DISK.replace(tmp_path / "file", b"")
    for name in ("run", "file", "nothing"):
        DISK.remove(tmp_path / name)
    assert DISK.names(tmp_path) == ()


def test_one_holds_a_file(tmp_path: Path) -> None:
    hold = DISK.try_hold(tmp_path / "lock")
    assert hold is not None
    assert DISK.try_hold(tmp_path / "lock") is None
    hold.release()
    again = DISK.try_hold(tmp_path / "lock")
    assert again is not None
    again.release()


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "journal.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it is a pipe"):
        DISK.read(pipe)
    with pytest.raises(OSError, match="it is a pipe"):
        DISK.open(pipe)
