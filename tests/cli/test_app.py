import errno
import re
from io import StringIO
from pathlib import Path

import pytest

from gb300serve import __version__
from gb300serve.app.environment import read_environment
from gb300serve.cli.app import COMMANDS, invoke
from gb300serve.cli.console import TerminalConsole
from tests.support.invoke import run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compil", "v14"], "No such command 'compil'. Did you mean 'compile'?"),
        (["compile"], "Missing argument 'REF'."),
        (["compile", "v14", "--jsn"], "No such option: --jsn"),
        (["compile", "v14", "--to", "yaml"], "Invalid value for '--to': 'yaml' is not one of 'shell', 'json'"),
        (["compile", "v14", "--image-ref", "id"], "Invalid value for '--image-ref'"),
        (["compile", "v14", "v13"], "Got unexpected extra argument(s) (v13)"),
        (["diff", "v14"], "Missing argument 'REF'"),
        (["pin"], "Missing argument 'REF...'"),
    ],
)  # fmt: skip
def test_a_wrong_command_line(words: list[str], said: str) -> None:
    answer = run(*words)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help").code == 0
    said = capsys.readouterr().out
    for name, text in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(text)}$", said, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(name, "--help").code == 0
    assert f"Usage: gb300serve {name} " in capsys.readouterr().out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version").code == 0
    assert capsys.readouterr().out == f"gb300serve {__version__}\n"


class Broken:
    """A stream that fails as `error` says."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def write(self, text: str) -> int:
        raise self.error

    def flush(self) -> None:
        raise self.error

    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize(("error", "code"), [(BrokenPipeError(), 0), (KeyboardInterrupt(), 130)])
def test_a_reader_that_has_gone_and_an_interruption(error: BaseException, code: int) -> None:
    err = StringIO()
    console = TerminalConsole(Broken(error), err)  # type: ignore[arg-type] # as much of a stream as is needed
    assert invoke(["schema"], console, (read_environment({"HOME": "/nonexistent"}), console)) == code
    assert err.getvalue() == ("gb300serve: interrupted\n" if code else "")


def test_a_result_that_cannot_be_written() -> None:
    err = StringIO()
    full = Broken(OSError(errno.ENOSPC, "No space left on device"))
    console = TerminalConsole(full, err)  # type: ignore[arg-type] # as much of a stream as is needed
    assert invoke(["schema"], console, (read_environment({"HOME": "/nonexistent"}), console)) == 6
    assert err.getvalue() == (
        "gb300serve: the result cannot be written: No space left on device\n  hint: check its redirection\n"
    )


def test_a_bug_is_one_line_and_a_file() -> None:
    out, err = StringIO(), StringIO()
    console = TerminalConsole(out, err)
    assert invoke(["list"], console, "neither an environment nor a console") == 70
    match = re.fullmatch(r"gb300serve: a bug of ours \((\w+)\); the traceback is in (\S+)\n", err.getvalue())
    assert match is not None
    report = Path(match[2])
    assert report.read_text().startswith(f"gb300serve {__version__}, Python ")
    assert "Traceback (most recent call last)" in report.read_text()
    report.unlink()
