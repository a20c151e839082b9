from pathlib import Path

from gb300serve.core.files import expanded, is_directory, is_file


def test_a_home_directory() -> None:
    assert expanded("~/a") == Path.home() / "a"
    assert expanded("/a/~") == Path("/a/~")
    assert expanded("~nobody-of-that-name/a") == Path("~nobody-of-that-name/a")


def test_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.touch()
    assert (is_file(file), is_directory(file)) == (True, False)
    assert (is_file(tmp_path), is_directory(tmp_path)) == (False, True)


def test_a_name_that_no_file_can_have_is_not_there(tmp_path: Path) -> None:
    for name in ("x" * 300, "a\0b"):
        assert (is_file(tmp_path / name), is_directory(tmp_path / name)) == (False, False)
