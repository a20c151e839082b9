"""`gb300serve help`: the guides, with and without a terminal."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from gb300serve.cli.app import COMMANDS
from tests.support.documents import GUIDES, name_of
from tests.support.invoke import run
from tests.support.program import ROOT

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
COMMAND = [sys.executable, "-m", "gb300serve", "help"]
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT / "src")}


def on_a_terminal(*words: str, **variables: str) -> str:
    """What a terminal of 80 columns receives."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = ENVIRONMENT | {"TERM": "xterm-256color", "PAGER": "cat"} | variables
    process = subprocess.Popen([*COMMAND, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    received = b""
    try:
        while chunk := os.read(ours, 65536):
            received += chunk
    except OSError:  # Linux: the program has closed its side
        pass
    os.close(ours)
    assert process.wait(timeout=30) == 0
    return received.decode().replace("\r\n", "\n")


def test_without_a_name_it_lists_the_topics() -> None:
    answer = run("help")
    listed = dict(re.findall(r"^  ([\w-]+)  +(.*)$", answer.out, re.MULTILINE))
    assert listed == {path.stem: path.read_text(encoding="utf-8").splitlines()[2] for path in GUIDES}
    assert (answer.code, answer.err) == (0, "")
    assert "gb300serve --help" in answer.out


@pytest.mark.parametrize("path", GUIDES, ids=name_of)
def test_a_guide_without_a_terminal_is_its_text(path: Path) -> None:
    answer = run("help", path.stem)
    assert (answer.code, answer.out, answer.err) == (0, path.read_text(encoding="utf-8"), "")


@pytest.mark.parametrize("path", GUIDES, ids=name_of)
def test_a_guide_begins_with_a_title_and_a_sentence(path: Path) -> None:
    title, blank, summary, end, *_ = path.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"# \S.*", title)
    assert (blank, end) == ("", "")
    assert re.fullmatch(r"[A-Z].*\.", summary)


def test_no_guide_has_the_name_of_a_command() -> None:
    assert {path.stem for path in GUIDES} & set(COMMANDS) == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_name_of_a_command_shows_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("help", name).code == 0
    shown = capsys.readouterr().out
    assert run(name, "--help").code == 0
    assert capsys.readouterr().out == shown != ""


@pytest.mark.parametrize(("topic", "meant"), [("memroy", "memory"), ("compil", "compile"), ("zzz", "gb300serve help")])
def test_an_unknown_topic(topic: str, meant: str) -> None:
    answer = run("help", topic)
    assert (answer.code, answer.out) == (2, "")
    assert topic in answer.err.splitlines()[0]
    assert meant in answer.err


def test_a_reader_that_takes_one_line() -> None:
    script = f'"{sys.executable}" -m gb300serve help memory | head -n 1'
    done = subprocess.run(["sh", "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("# Memory\n", "")


def test_a_terminal_gets_rendered_markdown() -> None:
    text = on_a_terminal("memory")
    plain = ESCAPES.sub("", text)
    assert text != plain
    assert "# Memory" not in plain
    assert "Memory" in plain
    assert "─" in plain  # a table
    assert max(map(len, plain.splitlines())) <= 80


def test_a_terminal_without_colour_gets_the_text() -> None:
    text = (ROOT / "src/gb300serve/guides/memory.md").read_text(encoding="utf-8")
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert on_a_terminal("memory", **variables).strip() == text.strip()


def test_the_pager_of_the_user_is_used(tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho paged\ncat >/dev/null\n", encoding="utf-8")
    pager.chmod(0o755)
    assert on_a_terminal("memory", PAGER=str(pager)) == "paged\n"
