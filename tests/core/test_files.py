import os
from pathlib import Path

import pytest

from gb300serve.core.files import PRIVATE, expand_user, is_directory, is_file, write_atomically


def test_expanded_replaces_the_home_directory() -> None:
    assert expand_user("~/a") == Path.home() / "a"
    assert expand_user("/a/~") == Path("/a/~")
    assert expand_user("~nobody-of-that-name/a") == Path("~nobody-of-that-name/a")


def test_is_file_and_is_directory(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.touch()
    assert (is_file(file), is_directory(file)) == (True, False)
    assert (is_file(tmp_path), is_directory(tmp_path)) == (False, True)


def test_an_invalid_file_name_is_absent(tmp_path: Path) -> None:
    for name in ("x" * 300, "a\0b"):
        assert (is_file(tmp_path / name), is_directory(tmp_path / name)) == (False, False)


@pytest.mark.parametrize("fsync", [False, True])
def test_write_atomically_replaces_the_file(tmp_path: Path, *, fsync: bool) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"a longer old text")
    write_atomically(path, b"new", fsync=fsync)
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_the_mode_is_subject_to_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "shared", b"")
        write_atomically(tmp_path / "private", b"", PRIVATE)
    finally:
        os.umask(before)
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600


def test_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "a", b"new")
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "absent" / "a", b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
