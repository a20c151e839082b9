"""README is run: every `console` block's commands print what stands below them; `...` stands for any lines."""

import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from gb300serve.cli.app import COMMANDS, invoke
from gb300serve.cli.console import Console
from gb300serve.cli.environment import read_environment

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def shown() -> Iterator[tuple[str, list[str]]]:
    """Commands and the lines below each."""
    for block in re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            yield command, lines


@pytest.mark.parametrize(("command", "lines"), list(shown()), ids=[command for command, _ in shown()])
def test_a_shown_command_prints_what_is_shown(
    command: str, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, *words = shlex.split(command)
    assert program == "gb300serve"
    monkeypatch.chdir(tmp_path)
    out, err = io.StringIO(), io.StringIO()
    console = Console(out, err)
    invoke(words, console, (read_environment({"HOME": str(tmp_path)}), console))
    pattern = "\n".join("(?:.*\n)*?.*" if line == "..." else re.escape(line) for line in lines)
    assert re.fullmatch(pattern, (out.getvalue() + err.getvalue()).rstrip("\n")), out.getvalue() + err.getvalue()


def test_every_command_is_in_the_table_and_nothing_else() -> None:
    table = TEXT.split("## Commands", 1)[1].split("REF is", 1)[0]
    assert sorted(re.findall(r"^\| `(\w+)", table, re.MULTILINE)) == sorted(COMMANDS)


def test_every_package_is_in_the_table() -> None:
    rows = TEXT.split("| directory | holds |", 1)[1].split("###", 1)[0]
    named = {name for row in re.findall(r"^\| ([^|]+) \|", rows, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    packages = {path.parent.name for path in (ROOT / "src" / "gb300serve").glob("*/__init__.py")}
    assert packages == named
