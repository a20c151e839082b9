import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gb300serve.adapters.system import SystemCacheFiles
from gb300serve.autotune.sets import CacheDeniedError, CacheUnusableError

NOBODY = 65534
FILES = SystemCacheFiles("gb300serve cache seed v14")


def test_a_file_is_written_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "set.json"
    assert FILES.written_at(path) is None
    FILES.write(path, b"{}")
    assert (FILES.read(path), path.stat().st_mode & 0o777) == (b"{}", 0o600)
    assert FILES.names(path.parent) == ("set.json",)
    assert FILES.written_at(path) == path.stat().st_mtime


def test_what_is_kept_aside_outlives_the_next_write(tmp_path: Path) -> None:
    path, aside = tmp_path / "set.json", tmp_path / "set.json.aside-1"
    FILES.write(path, b"old")
    FILES.keep_aside(path, aside)
    FILES.write(path, b"new")
    assert (path.read_bytes(), aside.read_bytes()) == (b"new", b"old")


def test_nothing_is_kept_over_something(tmp_path: Path) -> None:
    path, aside = tmp_path / "set.json", tmp_path / "set.json.aside-1"
    FILES.write(path, b"old")
    FILES.write(aside, b"older")
    with pytest.raises(CacheUnusableError):
        FILES.keep_aside(path, aside)
    assert aside.read_bytes() == b"older"


def test_no_directory_has_no_names(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert FILES.names(tmp_path / "none") == ()
    assert FILES.names(tmp_path / "file") == ()


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CacheUnusableError, match="Is a directory"):
        FILES.read(tmp_path)


@contextmanager
def as_a_user() -> Iterator[None]:
    """Root may read everything: what a user may not is tried as one."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_file_of_another_user_says_what_to_type(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    FILES.write(path, b"{}")
    path.chmod(0)
    with as_a_user(), pytest.raises(CacheDeniedError) as caught:
        FILES.read(path)
    assert caught.value.hint == "run it as root: sudo gb300serve cache seed v14"
