from pathlib import Path

import pytest

from gb300serve.adapters.system import StateUnwritableError, read_document, write_document


def test_written_whole_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "state" / "boots.json"
    write_document(path, {"a": ["ü", 1.5]})
    write_document(path, {"b": 2})
    assert read_document(path) == {"b": 2}
    assert [one.name for one in path.parent.iterdir()] == ["boots.json"]
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("text", ["", "[1]", "{", "\xff"])
def test_another_thing_in_the_file_is_empty(tmp_path: Path, text: str) -> None:
    path = tmp_path / "boots.json"
    path.write_bytes(text.encode("latin-1"))
    assert read_document(path) == {}
    assert read_document(tmp_path / "absent.json") == {}


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateUnwritableError) as caught:
        write_document(tmp_path / "file" / "boots.json", {})
    assert (caught.value.exit_code, caught.value.message.partition(":")[0]) == (
        6,
        f"cannot write {tmp_path}/file/boots.json",
    )
