import fcntl
from pathlib import Path

from gb300serve.simulator.records import exclusively, is_locked, read_json, write_json


def test_what_is_not_a_whole_object_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert read_json(path) is None
    assert read_json(path / "below-a-file") is None
    for text in ('{"a": 1', "[]", "", "\x00"):
        path.write_text(text)
        assert read_json(path) is None


def test_files_are_replaced_and_private(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for content in ({"a": 1}, {"b": "é"}):
        write_json(path, content)
        assert read_json(path) == content
    assert [found.name for found in tmp_path.iterdir()] == ["a.json"]
    assert oct(path.stat().st_mode)[-3:] == "600"


def test_locks_are_seen_and_let_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    with exclusively(path):
        assert is_locked(path)
    assert not is_locked(path)
    with path.open() as shared:
        fcntl.flock(shared, fcntl.LOCK_SH)
        assert not is_locked(path)
