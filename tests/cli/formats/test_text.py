from pathlib import Path

from gb300serve.cli.views.diagnostics import text_lines
from gb300serve.core.diagnostics import Diagnostic


def said(path: Path, text: str, column: int) -> list[str]:
    """The lines about a finding on line 1 of a file that has this text, without its first."""
    path.write_text(text, encoding="utf-8")
    return list(text_lines([Diagnostic("X001", "x", "error", "wrong", None, str(path), 1, column)]))[1:]


def test_the_line_is_shown_and_underlined(tmp_path: Path) -> None:
    assert said(tmp_path / "a", "key: value\n", 6) == ["    key: value", "         ^~~~~"]


def test_control_characters_move_no_underline(tmp_path: Path) -> None:
    assert said(tmp_path / "a", "k\x85e\x1b[31my: value\n", 12) == ["    key: value", "         ^~~~~"]


def test_a_secret_is_not_shown_with_a_control_character_in_it_either(tmp_path: Path) -> None:
    assert said(tmp_path / "a", "key: nvapi-0a1b2c3d4e5f6a7b8c9d0e1f\n", 6) == []
    assert said(tmp_path / "a", "key: nvapi-0a1b2c\x853d4e5f6a7b8c9d0e1f\n", 6) == []
